"""What the folder of a trained model holds.

config.json        format, sizes of the model, names of the tokenizers
model.weights.h5   weights, as Keras saves them
tokenizer.model    SentencePiece; or source_ and target_tokenizer.model
training.json      facts about the training
random.json        checkpoints only: states of the generators behind dropout
SHA256SUMS         of all of these
"""

import json
import pathlib

from keras_transformer.folders import (
    new_folder,
    verify_checksums,
    write_checksums,
)
from keras_transformer.text import Tokenizer
from keras_transformer.transformer import Transformer
from keras_transformer.version import __version__

FORMAT = 1

_CONFIG = "config.json"
_TRAINING = "training.json"
_WEIGHTS = "model.weights.h5"
_RANDOM = "random.json"
_ONE = ["tokenizer.model"]
_SEPARATE = ["source_tokenizer.model", "target_tokenizer.model"]


def write_run(
    folder,
    transformer,
    source_tokenizer,
    target_tokenizer,
    training,
    optimizer=False,
):
    """Writes a trained model.

    Args:
        folder: where to; it is written beside and renamed, so it is whole or
            not there.
        transformer: `Transformer`.
        source_tokenizer: `Tokenizer`.
        target_tokenizer: `Tokenizer`, maybe the same.
        training: dict of facts about the training.
        optimizer: whether to write the state of the optimizer and of the
            random generators too, so that the training can go on.

    Raises:
        ValueError: if `folder` exists, or `training` holds what JSON cannot.
    """
    names = _ONE if source_tokenizer is target_tokenizer else _SEPARATE
    config = {
        "format": FORMAT,
        "keras_transformer": __version__,
        "transformer": transformer.get_config(),
        "tokenizers": {"source": names[0], "target": names[-1]},
    }
    check_json(training)
    with new_folder(folder) as beside:
        _write_json(beside / _CONFIG, config)
        _write_json(beside / _TRAINING, training)
        if optimizer:
            states = [state.numpy().tolist() for state in _random(transformer)]
            _write_json(beside / _RANDOM, states)
        else:
            transformer = _without_optimizer(transformer)
        transformer.save_weights(beside / _WEIGHTS)
        source_tokenizer.save(beside / names[0])
        target_tokenizer.save(beside / names[-1])
        write_checksums(beside)


def read_run(folder):
    """Reads what `write_run` wrote.

    Args:
        folder: the folder.

    Returns:
        `Transformer`, source `Tokenizer`, target `Tokenizer` (the same object
        if they are one) and the dict of facts.

    Raises:
        ValueError: if the folder is none of ours, incomplete or changed, or
            of a newer format.
    """
    folder = pathlib.Path(folder)
    if not (folder / _CONFIG).is_file():
        raise ValueError(
            f"expected a folder that Translator.save wrote, got "
            f"{str(folder)!r}, which holds no {_CONFIG}"
        )
    verify_checksums(folder)
    config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    if config["format"] > FORMAT:
        raise ValueError(
            f"{str(folder / _CONFIG)!r} has format {config['format']}, "
            f"this version reads up to {FORMAT}; install a newer one"
        )
    transformer = Transformer.from_config(config["transformer"])
    transformer.load_weights(folder / _WEIGHTS)
    source, target = (
        folder / config["tokenizers"][side] for side in ("source", "target")
    )
    source_tokenizer = Tokenizer.load(source)
    return (
        transformer,
        source_tokenizer,
        source_tokenizer if source == target else Tokenizer.load(target),
        json.loads((folder / _TRAINING).read_text(encoding="utf-8")),
    )


def restore_training(folder, transformer):
    """Gives a model the state that a checkpoint has.

    Args:
        folder: one that `write_run` wrote with `optimizer`.
        transformer: `Transformer`, compiled as it was then.
    """
    folder = pathlib.Path(folder)
    transformer.optimizer.build(transformer.trainable_variables)
    transformer.load_weights(folder / _WEIGHTS)
    states = json.loads((folder / _RANDOM).read_text(encoding="utf-8"))
    for state, value in zip(_random(transformer), states, strict=True):
        state.assign(value)


def check_json(training):
    """Raises ValueError, now rather than after hours, if JSON cannot hold it.

    Args:
        training: dict of facts.
    """
    try:
        json.dumps(training, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"training must hold what JSON can, got {error}"
        ) from error


def _without_optimizer(transformer):
    """Copies a compiled model: Keras would save Adam's moments with it."""
    if not transformer.compiled:
        return transformer
    copy = Transformer.from_config(transformer.get_config())
    copy.set_weights(transformer.get_weights())
    return copy


def _random(transformer):
    """States of the generators, which Keras does not count as weights."""
    weights = {id(weight) for weight in transformer.weights}
    return [
        variable
        for variable in transformer.non_trainable_variables
        if id(variable) not in weights
    ]


def _write_json(path, value):
    text = json.dumps(value, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
