"""Multi30k is read as it was published, or refused."""

import gzip
import hashlib

import pytest

import multi30k_data

TEXT = b"a dog .\ntwo dogs .\n"


@pytest.fixture
def published(monkeypatch):
    """Lets TEXT be what was published under two names."""
    digest = hashlib.sha256(TEXT).hexdigest()
    for name in ("val.en", "val.lc.norm.tok.en"):
        monkeypatch.setitem(multi30k_data._SHA256, name, digest)


@pytest.fixture
def served(monkeypatch):
    """Serves what the test puts in; keeps the addresses asked for."""
    files, asked = {}, []

    def retrieve(address, path):
        asked.append(address)
        path.write_bytes(files[address.rsplit("/", 1)[1]])

    monkeypatch.setattr(multi30k_data.urllib.request, "urlretrieve", retrieve)
    return files, asked


def test_every_split_of_both_forms_has_a_checksum():
    splits = ("train", "val", *multi30k_data.TEST_SETS)
    names = [
        name.format(split=split, language=language)
        for name in multi30k_data._NAMES.values()
        for split in splits
        for language in ("en", "de")
    ]
    assert sorted(names) == sorted(multi30k_data._SHA256)
    assert {len(d) for d in multi30k_data._SHA256.values()} == {64}


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_at_hand_is_found_packed_or_not(tmp_path, published, packed):
    (tmp_path / "tok").mkdir()
    path = tmp_path / "tok" / "val.lc.norm.tok.en"
    path.write_bytes(TEXT)
    if packed:
        path.unlink()
        path = path.with_name(f"{path.name}.gz")
        path.write_bytes(gzip.compress(TEXT))
    assert multi30k_data.find_file(tmp_path, "tok", "val", "en") == path


def test_a_file_at_hand_that_has_changed_is_refused(tmp_path, published):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "val.en").write_bytes(TEXT + b"!")
    with pytest.raises(ValueError, match=r"raw/val\.en: its text has SHA-256"):
        multi30k_data.find_file(tmp_path, "raw", "val", "en")


@pytest.mark.parametrize(
    "form, name", [("raw", "val.en.gz"), ("tok", "val.lc.norm.tok.en")]
)
def test_a_missing_file_is_downloaded_once(
    tmp_path, published, served, form, name
):
    files, asked = served
    files[name] = gzip.compress(TEXT) if name.endswith("gz") else TEXT
    for _ in range(2):
        path = multi30k_data.find_file(tmp_path, form, "val", "en")
        assert path == tmp_path / form / name
    assert len(asked) == 1 and asked[0].endswith(f"/task1/{form}/{name}")


def test_a_download_that_is_not_the_published_file_does_not_stay(
    tmp_path, published, served
):
    served[0]["val.en.gz"] = gzip.compress(TEXT[:-3])
    with pytest.raises(ValueError, match="its text has SHA-256"):
        multi30k_data.find_file(tmp_path, "raw", "val", "en")
    assert list((tmp_path / "raw").iterdir()) == []
