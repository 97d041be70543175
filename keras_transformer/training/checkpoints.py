"""Checkpoints that survive whatever stops the training."""

import contextlib
import logging
import pathlib
import shutil

import keras

from keras_transformer.folders import verify_checksums
from keras_transformer.layers.arguments import check_positive

_logger = logging.getLogger(__name__)


class Checkpoints(keras.callbacks.Callback):
    """Saves each epoch as a folder and keeps the last and the best ones.

    It goes after the callbacks that add to the logs or stop the training.
    What `latest_checkpoint` finds later is the state at the end of an epoch;
    `epoch` and `history` among its facts tell where to go on.

    Args:
        folder: where to; it is made with the first checkpoint.
        save: function of a path and a dict of facts, which writes a new
            folder there, whole or not at all: of a `Translator`,
            `lambda path, facts: translator.save(path, facts, optimizer=True)`.
        keep_last: int, how many of the last epochs to keep. Two, so that
            there is another if the last one is damaged.
        keep_best: int, how many of the best.
        rank: function of an epoch's number, from 0, and its logs; gives how
            good it was, more is better, or None for an epoch not to choose.
        history: list of dicts, the logs of the epochs before `fit`.

    Raises:
        ValueError: if a number is out of range.
    """

    def __init__(
        self,
        folder,
        save,
        *,
        keep_last=2,
        keep_best=0,
        rank=lambda epoch, logs: epoch,
        history=(),
    ):
        super().__init__()
        check_positive(keep_last=keep_last)
        if keep_best < 0:
            raise ValueError(f"keep_best must be 0 or more, got {keep_best}")
        self.folder = pathlib.Path(folder)
        self.save = save
        self.keep_last = keep_last
        self.keep_best = keep_best
        self.rank = rank
        self.history = list(history)

    def path(self, epoch):
        """The folder of an epoch, counted from 0."""
        return self.folder / f"epoch-{epoch + 1:05d}"

    def best(self, count):
        """The best epochs so far, counted from 0, the best first."""
        ranks = {}
        for epoch, logs in enumerate(self.history):
            rank = self.rank(epoch, logs)
            if rank is not None:
                ranks[epoch] = rank
        return sorted(ranks, key=lambda epoch: (-ranks[epoch], epoch))[:count]

    def on_train_begin(self, logs=None):
        # Left by a process that was killed while it wrote.
        for beside in self.folder.glob(".epoch-*"):
            shutil.rmtree(beside, ignore_errors=True)

    def on_epoch_end(self, epoch, logs=None):
        self.history.append({n: float(v) for n, v in (logs or {}).items()})
        path = self.path(epoch)
        if path.exists():  # Damaged, or the run would have gone on from it.
            shutil.rmtree(path)
        self.save(
            path,
            {
                "epoch": epoch + 1,
                "history": self.history,
                "stopped": bool(self.model.stop_training),
            },
        )
        self.prune(self.keep_last, self.keep_best)

    def prune(self, keep_last, keep_best=0):
        """Removes all but the last and the best; the folder too, if empty."""
        epochs = range(len(self.history))
        last = epochs[max(0, len(epochs) - keep_last) :]
        keep = {*last, *self.best(keep_best)}
        for epoch in epochs:
            if epoch not in keep and self.path(epoch).exists():
                shutil.rmtree(self.path(epoch))
        if not keep:
            with contextlib.suppress(OSError):
                self.folder.rmdir()


class Replay(keras.callbacks.Callback):
    """Tells other callbacks of the epochs before an interruption.

    `fit` has every callback begin anew. One whose state follows from the logs
    of the epochs, such as `EarlyStopping` without `restore_best_weights`, is
    where it was once it has seen them again. It goes after them.

    Args:
        callbacks: list of those callbacks.
        history: list of dicts, the logs of the epochs before.
    """

    def __init__(self, callbacks, history):
        super().__init__()
        self.callbacks = callbacks
        self.history = history

    def on_train_begin(self, logs=None):
        for epoch, before in enumerate(self.history):
            for callback in self.callbacks:
                callback.on_epoch_end(epoch, dict(before))


def latest_checkpoint(folder):
    """Finds the newest checkpoint that is whole; warns of those that are not.

    Args:
        folder: that of `Checkpoints`; it need not exist.

    Returns:
        `pathlib.Path`, or None if there is none.
    """
    for path in sorted(pathlib.Path(folder).glob("epoch-*"), reverse=True):
        try:
            verify_checksums(path)
        except ValueError as error:
            _logger.warning("checkpoint %s is passed over: %s", path, error)
        else:
            return path
    return None
