"""What `fit` does after a batch, beyond Keras' own callbacks."""

import math
import time

import keras
import numpy as np


class StopWhenDiverged(keras.callbacks.Callback):
    """Ends `fit` with an error once the loss is no number any more.

    Keras' `TerminateOnNaN` only prints and returns, as if all were well.

    Args:
        describe: function of the number of the batch within the epoch, from
            0, and of the epoch, that gives a str about the batch.
        advice: function that gives a str, what is left and what to do.
    """

    def __init__(self, describe=None, advice=None):
        super().__init__()
        self.describe = describe
        self.advice = advice
        self._epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        loss = (logs or {}).get("loss", 0.0)
        if math.isfinite(loss):
            return
        where = f"batch {batch + 1} of epoch {self._epoch + 1}"
        if self.describe:
            where += f": {self.describe(batch, self._epoch)}"
        update = int(self.model.optimizer.iterations)
        self._fail(f"the loss became {loss} at update {update} ({where})")

    def on_epoch_end(self, epoch, logs=None):
        for name, value in (logs or {}).items():
            if not math.isfinite(value):
                self._fail(f"{name} is {value} after epoch {epoch + 1}")
        for weight in self.model.trainable_variables:
            if not np.isfinite(keras.ops.convert_to_numpy(weight)).all():
                self._fail(
                    f"{weight.path} is not finite after {epoch + 1} epochs"
                )

    def _fail(self, what):
        advice = f"; {self.advice()}" if self.advice else ""
        raise ValueError(
            f"the training diverged: {what}; expected finite numbers; try a "
            f"lower learning rate or a longer warmup{advice}"
        )


class TokensPerSecond(keras.callbacks.Callback):
    """Logs the speed of training, for the progress bar and the history.

    Validation and other callbacks are not counted, nor is the first batch of
    `fit`, which waits for the compiler.

    Args:
        tokens_per_batch: float, real target tokens of a batch, on average.
        name: str, what it is logged as.
    """

    def __init__(self, tokens_per_batch, name="tokens_per_second"):
        super().__init__()
        self.tokens_per_batch = tokens_per_batch
        self.name = name
        self.speed = 0.0
        self._since = None
        self._seconds = 0.0
        self._batches = -1

    def on_train_begin(self, logs=None):
        self._batches = -1

    def on_epoch_begin(self, epoch, logs=None):
        self._since = None
        self._seconds = 0.0
        self._batches = min(self._batches, 0)

    def on_train_batch_begin(self, batch, logs=None):
        if self._since is None:
            self._since = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self._batches >= 0:
            self._seconds += now - self._since
        self._since = now
        self._batches += 1
        if self._batches > 0:
            tokens = self._batches * self.tokens_per_batch
            self.speed = tokens / self._seconds
        logs[self.name] = self.speed

    def on_epoch_end(self, epoch, logs=None):
        logs[self.name] = self.speed
