"""`keras-transformer train`: from parallel text to a folder."""

import json
import logging
import platform
import time

import keras
import tensorflow as tf

from keras_transformer.commands.arguments import read_corpus
from keras_transformer.commands.train_arguments import (
    WARMUP_STEPS,
    add_parser,
)
from keras_transformer.commands.train_model import make_translator
from keras_transformer.folders import refuse_existing
from keras_transformer.text import batches
from keras_transformer.training import (
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
    WarmupSchedule,
)
from keras_transformer.version import __version__

__all__ = ["add_parser", "run"]

# Validation sentences that the folder keeps, to check exports with.
_NUM_EXAMPLES = 100
# The paper's rate suits large models; a small one learns faster with more.
_TINY_PEAK_RATE = 0.002

_logger = logging.getLogger(__name__)


def run(arguments, output):
    """Trains a Translator and saves it."""
    refuse_existing(arguments.output)
    _check(arguments)
    if not arguments.start:
        arguments.size = arguments.size or "tiny"
    started = time.monotonic()
    corpus = read_corpus(arguments)
    valid = read_corpus(arguments, "valid-", required=False)
    for name, pairs in (("training", corpus), ("validation", valid)):
        if pairs:
            _logger.info("%s: %r", name, pairs)
    keras.utils.set_random_seed(arguments.seed)
    translator = make_translator(arguments, corpus)
    results = _fit(arguments, translator, corpus, valid)
    translator.training = {
        "settings": _settings(arguments),
        "pairs": len(corpus),
        "parameters": translator.transformer.count_params(),
        **results,
        "seed": arguments.seed,
        "minutes": round((time.monotonic() - started) / 60, 2),
        "versions": _versions(),
        "examples": (valid or corpus).source[:_NUM_EXAMPLES],
    }
    translator.save(arguments.output)
    summary = {"model": arguments.output, **translator.training}
    for name in ("settings", "history", "versions", "examples"):
        del summary[name]
    print(json.dumps(summary, ensure_ascii=False), file=output)


def _check(arguments):
    """Refuses what would be ignored, or found out late."""
    if arguments.start and arguments.peak_rate is arguments.factor is None:
        raise ValueError(
            f"--from {arguments.start} begins a new schedule; expected "
            "--peak-rate or --factor too"
        )
    if arguments.epochs < 1:
        raise ValueError(f"--epochs must be at least 1, got {arguments.epochs}")
    if not 0 <= arguments.ema < 1:
        raise ValueError(f"--ema must be in [0, 1), got {arguments.ema}")
    if arguments.patience is not None and arguments.patience < 1:
        raise ValueError(
            f"--patience must be at least 1, got {arguments.patience}"
        )
    if arguments.patience and not (
        arguments.valid_source or arguments.valid_tsv
    ):
        raise ValueError(
            "--patience needs validation; expected --valid-source and "
            "--valid-target, or --valid-tsv"
        )
    learned = ("vocab_size", "model_type", "separate_vocabularies")
    if arguments.source_tokenizer:
        for name in learned:
            if getattr(arguments, name) not in (None, False):
                raise ValueError(
                    f"--{name.replace('_', '-')} is for tokenizers that are "
                    "learned; expected it without --source-tokenizer"
                )
    elif arguments.target_tokenizer:
        raise ValueError(
            "--target-tokenizer is given, expected --source-tokenizer too"
        )


def _fit(arguments, translator, corpus, valid):
    """Trains; gives the facts of it."""
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    shape = {
        "batch_tokens": arguments.batch_tokens,
        "max_length": arguments.max_length,
    }
    train_batches = batches(corpus, *tokenizers, seed=arguments.seed, **shape)
    valid_batches = None
    if valid:
        valid_batches = batches(valid, *tokenizers, shuffle=False, **shape)
    model = translator.transformer
    _compile(arguments, model)
    history = model.fit(
        train_batches,
        validation_data=valid_batches,
        epochs=arguments.epochs,
        callbacks=_callbacks(arguments, valid),
        shuffle=False,  # The batches are shuffled already.
        verbose=arguments.verbose,
    ).history
    return _results(model, history)


def _compile(arguments, model):
    optimizer = keras.optimizers.Adam(
        _schedule(arguments, model.d_model),
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        use_ema=arguments.ema > 0,
        ema_momentum=arguments.ema,
    )
    model.compile(
        optimizer,
        MaskedCrossEntropy(arguments.label_smoothing, pad_id=model.pad_id),
        metrics=[TokenAccuracy(model.pad_id), Perplexity(model.pad_id)],
        jit_compile=True,
    )


def _schedule(arguments, d_model):
    warmup_steps, peak_rate, factor = (
        getattr(arguments, name)
        for name in ("warmup_steps", "peak_rate", "factor")
    )
    if warmup_steps is None:
        warmup_steps = WARMUP_STEPS[arguments.size or "tiny"]
    if peak_rate is None and factor is None:
        if arguments.size == "tiny":
            peak_rate = _TINY_PEAK_RATE
        else:
            factor = 1.0
    if factor is not None:
        return WarmupSchedule(d_model, warmup_steps, factor)
    return WarmupSchedule.from_peak(peak_rate, d_model, warmup_steps)


def _callbacks(arguments, valid):
    callbacks = [keras.callbacks.TerminateOnNaN()]
    if arguments.ema:
        callbacks.append(keras.callbacks.SwapEMAWeights(swap_on_epoch=True))
    if valid:
        # The last one, for it keeps the weights that the others have left.
        callbacks.append(
            keras.callbacks.EarlyStopping(
                "val_perplexity",
                mode="min",
                patience=arguments.patience or arguments.epochs,
                restore_best_weights=True,
            )
        )
    return callbacks


def _results(model, history):
    """The facts of the epoch whose weights are kept."""
    judge = history.get("val_perplexity", history["perplexity"])
    losses = [*history["loss"], *history.get("val_loss", ())]
    if not all(map(_is_finite, [*losses, *judge])):
        raise ValueError(
            f"the training diverged in epoch {len(history['loss'])}, so "
            "nothing is saved; expected a finite loss; try a lower "
            "--peak-rate or more --warmup-steps"
        )
    kept = len(judge) - 1
    if "val_perplexity" in history:
        kept = judge.index(min(judge))
    return {
        "epochs": len(judge),
        "epoch_kept": kept + 1,
        "updates": int(model.optimizer.iterations),
        **{name: round(values[kept], 5) for name, values in history.items()},
        "history": {
            name: [round(value, 5) for value in values]
            for name, values in history.items()
        },
    }


def _is_finite(value):
    return abs(value) < float("inf")


def _settings(arguments):
    return {
        name: value
        for name, value in vars(arguments).items()
        if name not in ("run", "verbose", "output")
    }


def _versions():
    return {
        "keras_transformer": __version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
    }
