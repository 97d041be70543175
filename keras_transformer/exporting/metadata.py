"""What a client has to know of an export, beside its graphs."""

import json

import keras
import tensorflow as tf

from keras_transformer.decoding.options import OPTIONS, RANGES
from keras_transformer.version import __version__

METADATA = "metadata.json"

_RULES = {
    "source_ids": "pieces of the source tokenizer, then eos, padded with pad",
    "target_ids": "pieces of the target tokenizer, then eos, padded with pad",
    "unknown_ids": "an id outside its vocabulary counts as unk",
    "options": "what is not given has its default, where the runtime knows "
    "defaults; a value out of range counts as the nearest one within (ranges), "
    "num_hypotheses at most as beam_size",
    "lengths": "every length counts generated ids, eos included, bos not",
    "stop": "beam: a row stops when its num_hypotheses best finished "
    "hypotheses cannot be beaten by any alive one at any length up to "
    "max_length; with early_stopping 1 once beam_size hypotheses have finished",
    "sampling": "logits, repetition_penalty, forbidden ids, temperature, "
    "softmax, top_k, top_p, draw; the same "
    "seed gives the same row in every batch, and in every runtime that divides "
    "int32 exactly",
    "empty_slot": "length 0 and score minus infinity",
    "empty_source": "a row without a piece generates nothing: length 0",
    **{option.name: option.rule for option in OPTIONS},
}


def write_metadata(translator, folder, signatures):
    """Writes `metadata.json` and the tokenizer models.

    Args:
        translator: `Translator`.
        folder: `pathlib.Path`, made if need be.
        signatures: dict of name to `Signature` of what is exported.
    """
    contract = {
        name: {
            side: [argument._asdict() for argument in getattr(signature, side)]
            for side in ("inputs", "outputs")
        }
        for name, signature in signatures.items()
    }
    facts = {"signatures": contract, "rules": _RULES, "ranges": RANGES}
    write_facts(translator, folder, {**facts, **facts_of(translator)})


def write_facts(translator, folder, facts):
    """Writes a dict as `metadata.json`, and the tokenizer models."""
    folder.mkdir(exist_ok=True)
    (folder / METADATA).write_text(
        json.dumps(facts, indent=2) + "\n", encoding="utf-8"
    )
    for side in ("source", "target"):
        tokenizer = getattr(translator, f"{side}_tokenizer")
        tokenizer.save(folder / f"{side}_tokenizer.model")


def facts_of(translator):
    """Tells the ids and sizes of a model, and what made it, for JSON."""
    model = translator.transformer
    return {
        "special_ids": {
            "pad": model.pad_id,
            "bos": model.bos_id,
            "eos": model.eos_id,
            "unk": model.unk_id,
        },
        "vocab_sizes": {
            "source": model.source_vocab_size,
            "target": translator.generator.target_vocab_size,
        },
        "versions": {
            "keras_transformer": __version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
        },
    }
