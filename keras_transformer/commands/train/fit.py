"""How `keras-transformer train` trains."""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_transformer.commands.train.callbacks import (
    make_callbacks,
    take_back_average,
)
from keras_transformer.run_folder import restore_training
from keras_transformer.text import BatchPlan, ParallelCorpus, batches
from keras_transformer.training import (
    BleuScore,
    Checkpoints,
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
    average_weights,
)
from keras_transformer.translator import Translator

_DIGITS = 5  # Of what is kept and printed.


class Data(NamedTuple):
    """What to train and to validate with."""

    plan: BatchPlan
    steps: int  # Batches of an epoch.
    valid: ParallelCorpus | None
    valid_batches: tf.data.Dataset | None


def make_data(
    translator,
    corpus,
    valid,
    *,
    steps_per_epoch,
    steps_per_update,
    bpe_dropout,
    seed,
    batch_tokens,
    max_length,
):
    """Plans the batches of a corpus, and those of one for validation or None.

    Raises:
        ValueError: if a setting does not fit the texts.
    """
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    shape = {"batch_tokens": batch_tokens, "max_length": max_length}
    plan = BatchPlan(
        corpus,
        *tokenizers,
        seed=seed,
        steps_per_update=steps_per_update,
        bpe_dropout=bpe_dropout,
        **shape,
    )
    steps = steps_per_epoch or len(plan)
    if steps % steps_per_update:
        raise ValueError(
            f"--steps-per-epoch must be a multiple of --steps-per-update "
            f"{steps_per_update}, got {steps}"
        )
    valid_batches = None
    if valid:
        valid_batches = batches(valid, *tokenizers, shuffle=False, **shape)
    return Data(plan, steps, valid, valid_batches)


def compile_model(model, schedule, *, steps_per_update, ema, label_smoothing):
    """Compiles with the paper's optimizer and loss."""
    model.compile(
        keras.optimizers.Adam(
            schedule,
            beta_1=0.9,
            beta_2=0.98,
            epsilon=1e-9,
            use_ema=ema > 0,
            ema_momentum=ema,
            gradient_accumulation_steps=(
                steps_per_update if steps_per_update > 1 else None
            ),
        ),
        MaskedCrossEntropy(label_smoothing, pad_id=model.pad_id),
        metrics=[TokenAccuracy(model.pad_id), Perplexity(model.pad_id)],
        jit_compile=True,
    )


def fit(
    translator,
    data,
    progress,
    save,
    *,
    epochs,
    ema,
    bleu_every,
    bleu_tokenize,
    patience,
    select,
    average,
    keep,
    tensorboard,
    verbose,
):
    """Trains, or goes on, and leaves the chosen weights in the model.

    The `translator` holds a compiled model, which the function `save` of a
    path, a dict of facts and options saves. `Progress` tells where to go on.

    Returns:
        `Checkpoints` and a dict of facts about the training.
    """
    model = translator.transformer
    if progress.checkpoint:
        restore_training(progress.checkpoint, model)
        if ema:
            take_back_average(model)
    bleu = None
    if bleu_every:
        bleu = BleuScore(
            translator.translate,
            data.valid.source,
            data.valid.target,
            every=bleu_every,
            tokenize=bleu_tokenize,
        )
        # Keras says so too, but not if nothing is left to train.
        bleu.set_params({"epochs": epochs})
    checkpoints = Checkpoints(
        progress.folder,
        lambda path, facts: save(path, facts, optimizer=True),
        keep_last=max(2, keep),
        keep_best=average,
        rank=_rank(select, data.valid, bleu),
        history=progress.history,
    )
    if not progress.stopped and progress.epoch < epochs:
        model.fit(
            data.plan.endless(start=progress.epoch * data.steps),
            steps_per_epoch=data.steps,
            validation_data=data.valid_batches,
            initial_epoch=progress.epoch,
            epochs=epochs,
            callbacks=make_callbacks(
                data, checkpoints, bleu, ema, patience, tensorboard
            ),
            shuffle=False,  # The batches are shuffled already.
            verbose=verbose,
        )
    return checkpoints, _finish(model, checkpoints, data.valid_batches, bleu)


def _rank(select, valid, bleu):
    """How good an epoch is, for `Checkpoints`."""
    if select == "last" or not valid:
        return lambda epoch, logs: epoch
    if bleu:
        # In between the score is that of an earlier epoch.
        return lambda epoch, logs: (
            logs[bleu.name] if bleu.is_due(epoch) else None
        )
    return lambda epoch, logs: -logs["val_perplexity"]


def _finish(model, checkpoints, valid_batches, bleu):
    """Puts the best weights into the model; gives the facts of them."""
    history = checkpoints.history
    best = checkpoints.best(checkpoints.keep_best)
    paths = [checkpoints.path(epoch) for epoch in best]
    model.set_weights(
        average_weights(
            Translator.load(path).transformer.get_weights() for path in paths
        )
    )
    scores = dict(history[best[0]])
    if len(best) > 1 and valid_batches:  # The scores of the average.
        found = model.evaluate(valid_batches, verbose=0, return_dict=True)
        scores.update({f"val_{name}": v for name, v in found.items()})
        if bleu:
            scores["val_bleu"] = bleu.evaluate()
    return {
        "epochs": len(history),
        "epoch_kept": best[0] + 1,
        **({"epochs_averaged": [e + 1 for e in best]} if len(best) > 1 else {}),
        "updates": int(model.optimizer.iterations),
        **{name: round(value, _DIGITS) for name, value in scores.items()},
        "history": {
            name: [round(logs[name], _DIGITS) for logs in history]
            for name in history[0]
        },
    }
