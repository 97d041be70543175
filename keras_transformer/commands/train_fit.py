"""How `keras-transformer train` trains."""

import pathlib

import keras

from keras_transformer.commands.train_logs import TranslationText
from keras_transformer.commands.train_schedule import make_schedule
from keras_transformer.run_folder import restore_training
from keras_transformer.text import BatchPlan, batches
from keras_transformer.training import (
    BleuScore,
    Checkpoints,
    MaskedCrossEntropy,
    Perplexity,
    Replay,
    StopWhenDiverged,
    TokenAccuracy,
    TokensPerSecond,
    average_weights,
)
from keras_transformer.translator import Translator

_DIGITS = 5  # Of what is kept and printed.


def fit(arguments, translator, corpus, valid, progress, save):
    """Trains, or goes on, and leaves the chosen weights in the model.

    Args:
        arguments: those of the command.
        translator: `Translator`.
        corpus: `ParallelCorpus` to train on.
        valid: `ParallelCorpus` for validation, or None.
        progress: `Progress`.
        save: function of a path, a dict of facts and options, which saves
            the translator.

    Returns:
        `Checkpoints` and a dict of facts about the training.
    """
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    shape = {
        "batch_tokens": arguments.batch_tokens,
        "max_length": arguments.max_length,
    }
    plan = BatchPlan(
        corpus,
        *tokenizers,
        seed=arguments.seed,
        steps_per_update=arguments.steps_per_update,
        bpe_dropout=arguments.bpe_dropout,
        **shape,
    )
    steps = _steps_per_epoch(arguments, plan)
    valid_batches = None
    if valid:
        valid_batches = batches(valid, *tokenizers, shuffle=False, **shape)
    model = translator.transformer
    _compile(arguments, model, steps)
    if progress.checkpoint:
        restore_training(progress.checkpoint, model)
        _take_back_average(model)
    checkpoints = Checkpoints(
        progress.folder,
        lambda path, facts: save(path, facts, optimizer=True),
        keep_last=max(2, arguments.keep),
        keep_best=arguments.average,
        rank=_rank(arguments, valid),
        history=progress.history,
    )
    bleu = None
    if arguments.bleu_every:
        bleu = BleuScore(
            translator.translate,
            valid.source,
            valid.target,
            every=arguments.bleu_every,
            tokenize=arguments.bleu_tokenize,
        )
    if not progress.stopped and progress.epoch < arguments.epochs:
        model.fit(
            plan.endless(start=progress.epoch * steps),
            steps_per_epoch=steps,
            validation_data=valid_batches,
            initial_epoch=progress.epoch,
            epochs=arguments.epochs,
            callbacks=_callbacks(arguments, valid, plan, bleu, checkpoints),
            shuffle=False,  # The batches are shuffled already.
            verbose=arguments.verbose,
        )
    return checkpoints, _finish(model, checkpoints, valid_batches, bleu)


def _steps_per_epoch(arguments, plan):
    steps = arguments.steps_per_epoch or len(plan)
    if steps % arguments.steps_per_update:
        raise ValueError(
            f"--steps-per-epoch must be a multiple of --steps-per-update "
            f"{arguments.steps_per_update}, got {steps}"
        )
    return steps


def _compile(arguments, model, steps_per_epoch):
    accumulated = arguments.steps_per_update
    optimizer = keras.optimizers.Adam(
        make_schedule(arguments, model.d_model, steps_per_epoch),
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        use_ema=arguments.ema > 0,
        ema_momentum=arguments.ema,
        gradient_accumulation_steps=accumulated if accumulated > 1 else None,
    )
    model.compile(
        optimizer,
        MaskedCrossEntropy(arguments.label_smoothing, pad_id=model.pad_id),
        metrics=[TokenAccuracy(model.pad_id), Perplexity(model.pad_id)],
        jit_compile=True,
    )


def _callbacks(arguments, valid, plan, bleu, checkpoints):
    """In the order in which they need each other."""
    callbacks = [
        StopWhenDiverged(
            lambda batch, epoch: plan.describe(
                epoch * checkpoints.params["steps"] + batch
            ),
            lambda: _last_good(checkpoints),
        )
    ]
    if arguments.ema:
        callbacks.append(keras.callbacks.SwapEMAWeights(swap_on_epoch=True))
    callbacks.append(TokensPerSecond(plan.tokens_per_batch))
    follow_logs = []
    if bleu:
        follow_logs.append(bleu)
    if arguments.patience:
        follow_logs.append(
            keras.callbacks.EarlyStopping(
                "val_bleu" if bleu else "val_perplexity",
                mode="max" if bleu else "min",
                patience=arguments.patience,
            )
        )
    callbacks += follow_logs
    if arguments.tensorboard:
        callbacks.append(
            keras.callbacks.TensorBoard(
                arguments.tensorboard, write_graph=False
            )
        )
        if bleu:
            texts = pathlib.Path(arguments.tensorboard) / "translations"
            callbacks.append(TranslationText(bleu, texts))
    callbacks.append(Replay(follow_logs, checkpoints.history))
    return [*callbacks, checkpoints]


def _last_good(checkpoints):
    if not checkpoints.history:
        return "there is no checkpoint yet"
    return (
        "the last good checkpoint, which --from takes, is "
        f"{checkpoints.path(len(checkpoints.history) - 1)}"
    )


def _rank(arguments, valid):
    """How good an epoch is, for `Checkpoints`."""
    if arguments.select == "last" or not valid:
        return lambda epoch, logs: epoch
    if arguments.bleu_every:
        # In between the score is that of an earlier epoch.
        return lambda epoch, logs: (
            logs["val_bleu"]
            if (epoch + 1) % arguments.bleu_every == 0
            or epoch + 1 == arguments.epochs
            else None
        )
    return lambda epoch, logs: -logs["val_perplexity"]


def _take_back_average(model):
    """Undoes what SwapEMAWeights did before a checkpoint was written.

    It swaps weights and moving average at the end of each epoch, and back at
    the begin of the next; one that is new swaps at the end of an epoch.
    """
    if model.optimizer.use_ema:
        swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
        swap.set_model(model)
        swap.set_params({"epochs": 0})
        swap.on_epoch_end(0)


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
