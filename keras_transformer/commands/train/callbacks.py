"""What `keras-transformer train` does after batches and epochs."""

import pathlib

import keras
import tensorflow as tf

from keras_transformer.training import (
    Replay,
    StopWhenDiverged,
    TokensPerSecond,
)


def make_callbacks(data, checkpoints, bleu, ema, patience, tensorboard):
    """Makes the callbacks of `fit`, in the order in which they need each other.

    `bleu` is a `BleuScore`, or None.
    """
    callbacks = [
        StopWhenDiverged(
            lambda batch, epoch: data.plan.describe(epoch * data.steps + batch),
            lambda: _last_good(checkpoints),
        )
    ]
    if ema:
        callbacks.append(keras.callbacks.SwapEMAWeights(swap_on_epoch=True))
    callbacks.append(TokensPerSecond(data.plan.tokens_per_batch))
    follow_logs = []
    if bleu:
        follow_logs.append(bleu)
    if patience:
        follow_logs.append(
            keras.callbacks.EarlyStopping(
                bleu.name if bleu else "val_perplexity",
                mode="max" if bleu else "min",
                patience=patience,
            )
        )
    callbacks += follow_logs
    if tensorboard:
        callbacks.append(
            keras.callbacks.TensorBoard(tensorboard, write_graph=False)
        )
        if bleu:
            texts = pathlib.Path(tensorboard) / "translations"
            callbacks.append(TranslationText(bleu, texts))
    callbacks.append(Replay(follow_logs, checkpoints.history))
    return [*callbacks, checkpoints]


def take_back_average(model):
    """Undoes what SwapEMAWeights did before a checkpoint was written.

    It swaps weights and moving average at the end of each epoch, so that the
    average is validated and saved, and back at the begin of the next. One
    that is new does not know of the former, and swaps as a test begins.
    """
    swap = keras.callbacks.SwapEMAWeights()
    swap.set_model(model)
    swap.on_test_begin()


def _last_good(checkpoints):
    if not checkpoints.history:
        return "there is no checkpoint yet"
    return (
        "the last good checkpoint, which --from takes, is "
        f"{checkpoints.path(len(checkpoints.history) - 1)}"
    )


class TranslationText(keras.callbacks.Callback):
    """Writes some validation sentences to TensorBoard, as `BleuScore` put them.

    It goes after the `BleuScore`.

    Args:
        bleu_score: `BleuScore`.
        log_dir: folder, a subfolder of that of `keras.callbacks.TensorBoard`.
        count: int, how many.
    """

    def __init__(self, bleu_score, log_dir, count=5):
        super().__init__()
        self.bleu_score = bleu_score
        self.log_dir = str(log_dir)
        self.count = count
        self._writer = None

    def on_epoch_end(self, epoch, logs=None):
        if not self.bleu_score.is_due(epoch):
            return
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(self.log_dir)
        rows = zip(
            self.bleu_score.source,
            self.bleu_score.translations,
            self.bleu_score.target,
            strict=True,
        )
        lines = ["| source | translation | reference |", "|---|---|---|"]
        for _, row in zip(range(self.count), rows, strict=False):
            cells = (cell.replace("|", "&#124;") for cell in row)
            lines.append(f"| {' | '.join(cells)} |")
        with self._writer.as_default():
            tf.summary.text("translations", "\n".join(lines), step=epoch)
        self._writer.flush()

    def on_train_end(self, logs=None):
        if self._writer is not None:
            self._writer.close()
            self._writer = None
