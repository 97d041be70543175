"""Position-wise feed-forward network (paper, section 3.3)."""

import keras

from keras_transformer.layers.arguments import check_positive, check_rate
from keras_transformer.layers.dropout import Dropout


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(keras.layers.Layer):
    """Works on each position by itself: `ReLU(x W_1 + b_1) W_2 + b_2`.

    Paper: section 3.3, equation 2. Different: the activation is free, and
    dropout on the inner layer is possible (default 0, as in the paper).

    Args:
        d_model: int, `D`, the width of the output.
        d_ff: int, `F`, the width of the inner layer.
        dropout: float in [0, 1), rate on the inner layer.
        activation: a Keras activation or its name.
        **kwargs: the arguments of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, T, D)`.
        training: bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)`.

    Raises:
        ValueError: if a size is not positive or `dropout` not in [0, 1).

    Example:

    >>> outputs = FeedForward(d_model=4, d_ff=8)(np.ones((2, 3, 4)))
    >>> tuple(outputs.shape)
    (2, 3, 4)
    """

    def __init__(self, d_model, d_ff, dropout=0.0, activation="relu", **kwargs):
        super().__init__(**kwargs)
        check_positive(d_model=d_model, d_ff=d_ff)
        check_rate(dropout=dropout)
        self.supports_masking = True
        self.d_model = d_model
        self.d_ff = d_ff
        self.dropout = dropout
        self.activation = keras.activations.get(activation)
        self.inner = keras.layers.Dense(
            d_ff,
            activation=self.activation,
            name="inner",
            dtype=self.dtype_policy,
        )
        self.inner_dropout = Dropout(dropout, dtype=self.dtype_policy)
        self.outer = keras.layers.Dense(
            d_model, name="outer", dtype=self.dtype_policy
        )

    def build(self, input_shape):
        self.inner.build(input_shape)
        self.outer.build((*input_shape[:-1], self.d_ff))

    def call(self, inputs, training=None):
        inner = self.inner_dropout(self.inner(inputs), training=training)
        return self.outer(inner)

    def get_config(self):
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "d_ff": self.d_ff,
            "dropout": self.dropout,
            "activation": keras.activations.serialize(self.activation),
        }
