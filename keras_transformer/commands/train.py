"""`keras-transformer train`: from parallel text to a folder."""

import json
import logging
import platform
import time

import keras
import tensorflow as tf

from keras_transformer.commands.arguments import read_corpus
from keras_transformer.commands.train_arguments import add_parser
from keras_transformer.commands.train_checks import check
from keras_transformer.commands.train_fit import fit
from keras_transformer.commands.train_model import make_translator
from keras_transformer.commands.train_resume import (
    Progress,
    checkpoint_folder,
    digest,
)
from keras_transformer.folders import refuse_existing
from keras_transformer.version import __version__

__all__ = ["add_parser", "run"]

# Validation sentences that the folder keeps, to check exports with.
_NUM_EXAMPLES = 100
# Arguments that may differ when an interrupted training goes on.
_FREE = ("run", "verbose", "output", "tensorboard", "keep")

_logger = logging.getLogger(__name__)


def run(arguments, output):
    """Trains a Translator and saves it."""
    started = time.monotonic()
    refuse_existing(arguments.output)
    check(arguments)
    if not arguments.start:
        arguments.size = arguments.size or "tiny"
    corpus = read_corpus(arguments)
    valid = read_corpus(arguments, "valid-", required=False)
    for name, pairs in (("training", corpus), ("validation", valid)):
        if pairs:
            _logger.info("%s: %r", name, pairs)
    facts = {
        "settings": _settings(arguments),
        "data": {"training": digest(corpus), "validation": digest(valid)},
        "pairs": len(corpus),
        "seed": arguments.seed,
        "versions": _versions(),
        "examples": (valid or corpus).source[:_NUM_EXAMPLES],
    }
    progress = Progress.find(checkpoint_folder(arguments.output), facts)
    keras.utils.set_random_seed(arguments.seed)
    translator = progress.translator or make_translator(arguments, corpus)
    facts["parameters"] = translator.transformer.count_params()

    def save(path, reached, **options):
        minutes = progress.minutes + (time.monotonic() - started) / 60
        translator.training = {
            **facts,
            **reached,
            "minutes": round(minutes, 2),
        }
        translator.save(path, **options)

    checkpoints, results = fit(
        arguments, translator, corpus, valid, progress, save
    )
    save(arguments.output, results)
    checkpoints.prune(arguments.keep)
    summary = {"model": arguments.output, **translator.training}
    for name in ("settings", "data", "history", "versions", "examples"):
        del summary[name]
    print(json.dumps(summary, ensure_ascii=False), file=output)


def _settings(arguments):
    return {
        name: value
        for name, value in vars(arguments).items()
        if name not in _FREE
    }


def _versions():
    return {
        "keras_transformer": __version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
    }
