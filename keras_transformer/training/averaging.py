"""The mean of several checkpoints (paper, section 6.1).

The paper averages the last 5 checkpoints of the base models and the last 20
of the big ones, written every 10 minutes.
"""

import keras
import numpy as np

from keras_transformer.layers.arguments import check_positive


def average_weights(sets):
    """Averages weights, in float64 so that the order hardly matters.

    Args:
        sets: iterable of lists of arrays, as `model.get_weights()` gives
            them; each is read once, so a generator needs little memory.

    Returns:
        List of arrays of the types of the first set. Integers, which count
        something, are those of the last set.

    Raises:
        ValueError: if there is none, or their shapes differ.

    Example:

    >>> average_weights([[np.array([1.0, 2.0])], [np.array([3.0, 2.0])]])
    [array([2., 2.])]
    """
    count, sums, last = 0, None, None
    for weights in sets:
        last = [np.asarray(array) for array in weights]
        shapes = [array.shape for array in last]
        if sums is None:
            types = [array.dtype for array in last]
            sums = [np.zeros(shape, np.float64) for shape in shapes]
        expected = [array.shape for array in sums]
        if shapes != expected:
            raise ValueError(
                "sets must hold weights of one model, got the shapes "
                f"{shapes} after {expected}"
            )
        for total, array in zip(sums, last, strict=True):
            total += array
        count += 1
    if count == 0:
        raise ValueError("sets must hold at least one list of weights, got 0")
    return [
        latest
        if np.issubdtype(kind, np.integer)
        else (total / count).astype(kind)
        for total, kind, latest in zip(sums, types, last, strict=True)
    ]


class WeightAveraging(keras.callbacks.Callback):
    """Ends `fit` with the mean of the weights of several epochs.

    Of the last ones, or with `monitor` of the best. Their weights are kept in
    memory. With a moving average in the optimizer, `SwapEMAWeights` goes
    before it.

    Args:
        count: int, how many epochs.
        monitor: str, the logged quantity that tells which are best; None
            takes the last ones.
        mode: "min" or "max", what is best.

    Raises:
        ValueError: if `count` is not positive, `mode` none of the two, or
            `monitor` is not logged.
    """

    def __init__(self, count, monitor=None, mode="min"):
        super().__init__()
        check_positive(count=count)
        if mode not in ("min", "max"):
            raise ValueError(f"mode must be 'min' or 'max', got {mode!r}")
        self.count = count
        self.monitor = monitor
        self.mode = mode
        self.kept = []  # (rank, weights), the largest ranks so far

    def on_train_begin(self, logs=None):
        self.kept = []

    def on_epoch_end(self, epoch, logs=None):
        self.kept.append((self._rank(epoch, logs), self.model.get_weights()))
        self.kept = sorted(self.kept, key=lambda pair: pair[0])[-self.count :]

    def on_train_end(self, logs=None):
        if self.kept:
            sets = (weights for _, weights in self.kept)
            self.model.set_weights(average_weights(sets))

    def _rank(self, epoch, logs):
        if self.monitor is None:
            return epoch
        if self.monitor not in (logs or {}):
            raise ValueError(
                f"monitor must be one of what is logged, {sorted(logs or {})}, "
                f"got {self.monitor!r}"
            )
        value = logs[self.monitor]
        return value if self.mode == "max" else -value
