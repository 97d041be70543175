"""The loss (paper, section 5.4)."""

import keras
from keras import ops

from keras_transformer.layers.arguments import check_rate


def token_cross_entropy(labels, logits, label_smoothing=0.0, from_logits=True):
    """Computes the cross-entropy of each token with a smoothed target.

    The target is `1 - e` on the label plus `e / V` on every id, label
    included: `-(1 - e) log p(label) - (e / V) sum_v log p(v)`. The labels are
    sparse; compiled by XLA nothing of shape `(B, T, V)` is kept but the logits
    and their gradient.

    Args:
        labels: int tensor `(B, T)`.
        logits: float tensor `(B, T, V)`; probabilities if not `from_logits`.
        label_smoothing: float in [0, 1), `e`.
        from_logits: bool, whether `logits` are logits.

    Returns:
        float32 tensor `(B, T)`, in nats.
    """
    logits = ops.cast(logits, "float32")
    if not from_logits:
        logits = ops.log(ops.maximum(logits, keras.config.epsilon()))
    labels = ops.cast(labels, "int32")
    log_normalizer = ops.logsumexp(logits, axis=-1)
    # XLA computes this and its gradient without a tensor of their own; the
    # gradient of picking the labels would be scattered into one.
    ids = ops.arange(ops.shape(logits)[-1], dtype="int32")
    label_logits = ops.sum(
        ops.where(ops.equal(ids, labels[..., None]), logits, 0.0), axis=-1
    )
    losses = log_normalizer - (1 - label_smoothing) * label_logits
    if label_smoothing:
        losses = losses - label_smoothing * ops.mean(logits, axis=-1)
    return losses


@keras.saving.register_keras_serializable("keras_transformer")
class MaskedCrossEntropy(keras.losses.Loss):
    """Averages the cross-entropy over real tokens, never over padding.

    The loss of a batch is `sum(token losses * weights) / number of tokens`,
    where a token is a label other than `pad_id` and the weights are 1 unless
    `sample_weight` is given. A batch without a token has loss 0.

    Keras averages the losses of micro-batches (gradient accumulation) and of
    replicas, which is wrong where these hold different numbers of tokens;
    `keras_transformer.text.batches` sends weights that make the update's mean
    over tokens come out right.

    Paper: section 5.4, label smoothing 0.1. Same as the paper's code: the
    smoothed mass is spread over all `V` ids.

    Args:
        label_smoothing: float in [0, 1).
        pad_id: int, the label to ignore.
        from_logits: bool, whether predictions are logits.
        name: string.
        **kwargs: `dtype`, as of every Keras loss. `reduction` is fixed.

    Call arguments:
        y_true: int tensor `(B, T)`.
        y_pred: float tensor `(B, T, V)`.
        sample_weight: float tensor `(B,)` or `(B, T)`, or None.

    Returns:
        float32 scalar, in nats.

    Raises:
        ValueError: if `label_smoothing` is not in [0, 1), another `reduction`
            is asked for, or the weights have another rank.

    Example:

    >>> loss = MaskedCrossEntropy(label_smoothing=0.1)
    >>> logits = np.array([[[0.0, 5.0, 0.0, 0.0, 0.0], [9.0, 0, 0, 0, 0]]])
    >>> round(float(loss(np.array([[1, 0]]), logits)), 6)
    0.426595
    """

    def __init__(
        self,
        label_smoothing=0.0,
        pad_id=0,
        from_logits=True,
        name="masked_cross_entropy",
        **kwargs,
    ):
        reduction = kwargs.pop("reduction", "sum_over_batch_size")
        if reduction != "sum_over_batch_size":
            raise ValueError(
                "reduction must be 'sum_over_batch_size', the mean over "
                f"tokens, got reduction={reduction!r}"
            )
        # Keras casts the labels too, and half precision cannot hold ids.
        kwargs.setdefault("dtype", "float32")
        super().__init__(name=name, reduction="sum_over_batch_size", **kwargs)
        check_rate(label_smoothing=label_smoothing)
        self.label_smoothing = label_smoothing
        self.pad_id = pad_id
        self.from_logits = from_logits

    def __call__(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            sample_weight = token_weights(sample_weight)
        # A copy has no Keras mask, whose own mean would be taken as well.
        return super().__call__(y_true, ops.copy(y_pred), sample_weight)

    def call(self, y_true, y_pred):
        y_true = ops.convert_to_tensor(y_true)
        losses = token_cross_entropy(
            y_true, y_pred, self.label_smoothing, self.from_logits
        )
        real = ops.not_equal(y_true, self.pad_id)
        tokens = ops.sum(ops.cast(real, "float32"))
        # Keras divides the sum by the number of positions, and by that of
        # replicas; this turns the first into the number of tokens.
        positions = ops.cast(ops.size(losses), "float32")
        return ops.where(
            real, losses * (positions / ops.maximum(tokens, 1.0)), 0.0
        )

    def get_config(self):
        return {
            **super().get_config(),
            "label_smoothing": self.label_smoothing,
            "pad_id": self.pad_id,
            "from_logits": self.from_logits,
        }


def token_weights(sample_weight):
    """Gives weights an axis of tokens.

    Args:
        sample_weight: float tensor `(B,)` or `(B, T)`.

    Returns:
        float32 tensor `(B, 1)` or `(B, T)`.

    Raises:
        ValueError: if the rank is another.
    """
    weights = ops.cast(sample_weight, "float32")
    if len(weights.shape) not in (1, 2):
        raise ValueError(
            "sample_weight must have shape (B,) or (B, T), got shape "
            f"{tuple(weights.shape)}"
        )
    return weights if len(weights.shape) == 2 else weights[:, None]
