"""`keras-transformer train`: from parallel text to a folder."""

import functools
import json
import logging
import platform
import time

import keras
import tensorflow as tf

from keras_transformer.commands.arguments import read_corpus
from keras_transformer.commands.train.arguments import (
    add_parser,
    keywords,
    settings_of,
)
from keras_transformer.commands.train.checks import check
from keras_transformer.commands.train.fit import (
    compile_model,
    fit,
    make_data,
)
from keras_transformer.commands.train.model import make_translator
from keras_transformer.commands.train.resume import (
    Progress,
    checkpoint_folder,
    digest,
)
from keras_transformer.commands.train.schedule import make_schedule
from keras_transformer.folders import refuse_existing
from keras_transformer.version import __version__

__all__ = ["add_parser", "run"]

# Validation sentences that the folder keeps, to check exports with.
_NUM_EXAMPLES = 100
# Settings that may differ when an interrupted training goes on.
_FREE = ("run", "verbose", "output", "tensorboard", "keep")

_logger = logging.getLogger(__name__)


def run(arguments, output):
    """Trains a Translator and saves it."""
    started = time.monotonic()
    refuse_existing(arguments.output)
    check(arguments)
    corpus = read_corpus(arguments)
    valid = read_corpus(arguments, "valid-", required=False)
    for name, pairs in (("training", corpus), ("validation", valid)):
        if pairs:
            _logger.info("%s: %r", name, pairs)
    settings = settings_of(arguments)
    given = functools.partial(keywords, settings)
    facts = _facts(settings, corpus, valid)
    progress = Progress.find(checkpoint_folder(arguments.output), facts)
    keras.utils.set_random_seed(arguments.seed)
    translator = progress.translator or make_translator(settings, corpus)
    model = translator.transformer
    facts["parameters"] = model.count_params()

    def save(path, reached, **options):
        minutes = progress.minutes + (time.monotonic() - started) / 60
        timed = {**reached, "minutes": round(minutes, 2)}
        translator.training = {**facts, **timed}
        translator.save(path, **options)

    data = make_data(translator, corpus, valid, **given(make_data))
    schedule = make_schedule(model.d_model, data.steps, **given(make_schedule))
    compile_model(model, schedule, **given(compile_model))
    checkpoints, results = fit(translator, data, progress, save, **given(fit))
    save(arguments.output, results)
    checkpoints.prune(arguments.keep)
    summary = {"model": arguments.output, **translator.training}
    for name in ("settings", "data", "history", "versions", "examples"):
        del summary[name]
    print(json.dumps(summary, ensure_ascii=False), file=output)


def _facts(settings, corpus, valid):
    return {
        "settings": {n: v for n, v in settings.items() if n not in _FREE},
        "data": {"training": digest(corpus), "validation": digest(valid)},
        "pairs": len(corpus),
        "seed": settings["seed"],
        "versions": {
            "keras_transformer": __version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "python": platform.python_version(),
        },
        "examples": (valid or corpus).source[:_NUM_EXAMPLES],
    }
