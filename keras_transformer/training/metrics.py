"""Metrics over real tokens (paper, section 6 reports perplexity).

Each is exact over all tokens seen since the last reset, however these are
spread over batches; Keras' own `loss` is a mean over batches.
"""

import keras
from keras import ops

from keras_transformer.training.loss import (
    token_cross_entropy,
    token_weights,
)


@keras.saving.register_keras_serializable("keras_transformer")
class TokenCrossEntropy(keras.metrics.Mean):
    """Averages the cross-entropy of real tokens, without label smoothing.

    Args:
        pad_id: int, the label to ignore.
        name: string.
        **kwargs: `dtype`, as of every Keras metric.

    Call arguments:
        y_true: int tensor `(B, T)`.
        y_pred: float tensor `(B, T, V)`, logits.
        sample_weight: float tensor `(B,)` or `(B, T)`, or None.

    Returns:
        float32 scalar, in nats; 0 before any token.
    """

    def __init__(self, pad_id=0, name="token_cross_entropy", **kwargs):
        super().__init__(name=name, **kwargs)
        self.pad_id = pad_id

    def update_state(self, y_true, y_pred, sample_weight=None):
        values = token_cross_entropy(y_true, y_pred)
        weights = _real_weights(y_true, self.pad_id, sample_weight)
        values = ops.where(weights > 0, values, 0.0)
        # Flat, because Keras would take the mean of each row first.
        super().update_state(ops.ravel(values), ops.ravel(weights))

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id}


@keras.saving.register_keras_serializable("keras_transformer")
class Perplexity(TokenCrossEntropy):
    """Exponentiates the mean cross-entropy of real tokens.

    Paper: section 6.2 reports it per word piece, as here.

    Args:
        pad_id: int, the label to ignore.
        name: string.
        **kwargs: `dtype`, as of every Keras metric.

    Call arguments:
        as of `TokenCrossEntropy`.

    Returns:
        float32 scalar, at least 1.
    """

    def __init__(self, pad_id=0, name="perplexity", **kwargs):
        super().__init__(pad_id=pad_id, name=name, **kwargs)

    def result(self):
        return ops.exp(super().result())


@keras.saving.register_keras_serializable("keras_transformer")
class TokenAccuracy(keras.metrics.Mean):
    """Counts how often the likeliest token is the right one.

    Args:
        pad_id: int, the label to ignore.
        name: string.
        **kwargs: `dtype`, as of every Keras metric.

    Call arguments:
        y_true: int tensor `(B, T)`.
        y_pred: float tensor `(B, T, V)`, logits or probabilities.
        sample_weight: float tensor `(B,)` or `(B, T)`, or None.

    Returns:
        float32 scalar in [0, 1].
    """

    def __init__(self, pad_id=0, name="token_accuracy", **kwargs):
        super().__init__(name=name, **kwargs)
        self.pad_id = pad_id

    def update_state(self, y_true, y_pred, sample_weight=None):
        right = ops.equal(
            ops.cast(y_true, "int32"), ops.argmax(y_pred, axis=-1)
        )
        weights = _real_weights(y_true, self.pad_id, sample_weight)
        right = ops.cast(right, "float32")
        # Flat, because Keras would take the mean of each row first.
        super().update_state(ops.ravel(right), ops.ravel(weights))

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id}


def _real_weights(y_true, pad_id, sample_weight):
    real = ops.cast(ops.not_equal(y_true, pad_id), "float32")
    if sample_weight is None:
        return real
    return real * token_weights(sample_weight)
