"""The files of Multi30k, English and German (task 1), checked by SHA-256.

Elliott et al., 2016 (https://arxiv.org/abs/1605.00459). 29,000 captions for
training, 1,014 for validation and three test sets, in two forms: `raw` (cased
plain text) and `tok` (lower-cased, normalised, tokenised: the form in which
most published scores are computed).
"""

import gzip
import hashlib
import pathlib
import urllib.request

from keras_transformer import ParallelCorpus

TEST_SETS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")

_REPOSITORY = (
    "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1"
)
_NAMES = {"raw": "{split}.{language}", "tok": "{split}.lc.norm.tok.{language}"}
# Of the text, unpacked.
_SHA256 = {
    "test_2016_flickr.de": (
        "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"
    ),
    "test_2016_flickr.en": (
        "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"
    ),
    "test_2017_flickr.de": (
        "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081"
    ),
    "test_2017_flickr.en": (
        "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98"
    ),
    "test_2017_mscoco.de": (
        "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22"
    ),
    "test_2017_mscoco.en": (
        "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2"
    ),
    "train.de": (
        "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"
    ),
    "train.en": (
        "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"
    ),
    "val.de": (
        "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"
    ),
    "val.en": (
        "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"
    ),
    "test_2016_flickr.lc.norm.tok.de": (
        "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"
    ),
    "test_2016_flickr.lc.norm.tok.en": (
        "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"
    ),
    "test_2017_flickr.lc.norm.tok.de": (
        "02067e4a9402786a4fcb8c1b6f4307e4a5073ced64800abead5273b54f5f31f6"
    ),
    "test_2017_flickr.lc.norm.tok.en": (
        "c9d1dfd7a26add989382e534af235af9f0f658b2a30e7eb0efdaf142496ee54f"
    ),
    "test_2017_mscoco.lc.norm.tok.de": (
        "e2825990b8a4e5289d2cdba801d57c187810bab9b4f5d87a30c35800a0d871b6"
    ),
    "test_2017_mscoco.lc.norm.tok.en": (
        "fe69ae004d71c42ead0301e70c57de5b1b6b5fb7f52210d42b22801e98e656f3"
    ),
    "train.lc.norm.tok.de": (
        "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"
    ),
    "train.lc.norm.tok.en": (
        "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"
    ),
    "val.lc.norm.tok.de": (
        "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"
    ),
    "val.lc.norm.tok.en": (
        "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"
    ),
}


def load_corpus(data, form, split, keep_blank=False):
    """Reads one split.

    Args:
        data: folder that holds `raw` and `tok`; what is missing in it is
            downloaded.
        form: "raw" or "tok".
        split: "train", "val" or one of `TEST_SETS`.
        keep_blank: as of `ParallelCorpus`.

    Returns:
        `ParallelCorpus`, English to German.
    """
    paths = [
        find_file(data, form, split, language) for language in ("en", "de")
    ]
    return ParallelCorpus.from_files(*paths, keep_blank=keep_blank)


def find_file(data, form, split, language):
    """Finds a file, packed or not, downloads it if need be, and checks it.

    Args:
        data: folder that holds `raw` and `tok`.
        form: "raw" or "tok".
        split: "train", "val" or one of `TEST_SETS`.
        language: "en" or "de".

    Returns:
        `pathlib.Path`.

    Raises:
        ValueError: if the text is not the published one.
    """
    name = _NAMES[form].format(split=split, language=language)
    folder = pathlib.Path(data) / form
    path = folder / name
    if not path.exists():
        path = folder / f"{name}.gz"
    if not path.exists():
        path = _download(form, folder, name)
    _check(path, name)
    return path


def _check(path, name):
    packed = path.suffix == ".gz"
    with gzip.open(path) if packed else open(path, "rb") as stream:
        found = hashlib.sha256(stream.read()).hexdigest()
    if found != _SHA256[name]:
        raise ValueError(
            f"{path}: its text has SHA-256 {found}, expected {_SHA256[name]}"
        )


def _download(form, folder, name):
    """Downloads a file; one that is not the published one does not stay."""
    published = f"{name}.gz" if form == "raw" else name
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"part.{published}"
    try:
        urllib.request.urlretrieve(f"{_REPOSITORY}/{form}/{published}", part)
        _check(part, name)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return part.rename(folder / published)
