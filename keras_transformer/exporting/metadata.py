"""What a client has to know of an export, beside its graphs."""

import json

import keras
import tensorflow as tf

from keras_transformer.decoding import SIGNATURES
from keras_transformer.decoding.generator import EXTRA_LENGTH
from keras_transformer.version import __version__

METADATA = "metadata.json"

_RULES = {
    "source_ids": "pieces of the source tokenizer, then eos, padded with pad",
    "unknown_ids": "an id outside the source vocabulary counts as unk",
    "max_length": "-1: ids of the source row other than pad, plus "
    f"{EXTRA_LENGTH}",
    "lengths": "every length counts generated ids, eos included, bos not",
    "length_penalty": "score = log-probability / ((5 + length) / 6) ^ "
    "length_penalty",
    "stop": "a row stops when its num_hypotheses best finished hypotheses "
    "cannot be beaten by any alive one at any length up to max_length",
    "options": "a value out of range counts as the nearest one within: "
    "beam_size from 1, num_hypotheses from 1 to beam_size, length_penalty "
    "from -10 to 10, min_length from 0",
    "empty_slot": "length 0 and score minus infinity",
}


def write_metadata(translator, folder, signatures):
    """Writes `metadata.json` and the tokenizer models.

    Args:
        translator: `Translator`.
        folder: `pathlib.Path`, made if need be.
        signatures: list of the names of the exported signatures.
    """
    folder.mkdir(exist_ok=True)
    model = translator.transformer
    metadata = {
        "signatures": {
            name: {
                side: [
                    argument._asdict()
                    for argument in getattr(SIGNATURES[name], side)
                ]
                for side in ("inputs", "outputs")
            }
            for name in signatures
        },
        "rules": _RULES,
        "special_ids": {
            "pad": model.pad_id,
            "bos": model.bos_id,
            "eos": model.eos_id,
            "unk": model.unk_id,
        },
        "vocab_sizes": {
            "source": model.source_vocab_size,
            "target": model.target_vocab_size,
        },
        "versions": {
            "keras_transformer": __version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
        },
    }
    (folder / METADATA).write_text(
        json.dumps(metadata, indent=2) + "\n", encoding="utf-8"
    )
    translator.source_tokenizer.save(folder / "source_tokenizer.model")
    translator.target_tokenizer.save(folder / "target_tokenizer.model")
