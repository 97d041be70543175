"""Add & Norm (paper, sections 3.1 and 5.4)."""

import keras

from keras_transformer.layers.arguments import check_rate
from keras_transformer.layers.dropout import Dropout


@keras.saving.register_keras_serializable("keras_transformer")
class AddNorm(keras.layers.Layer):
    """Wraps a sublayer in dropout, a residual connection and a norm.

    - post-norm, the paper's: `LayerNorm(x + Dropout(Sublayer(x)))`
    - pre-norm (`norm_first`): `x + Dropout(Sublayer(LayerNorm(x)))`

    Paper: section 3.1 (residual, norm) and 5.4 (dropout before the addition).
    Different: `norm_first` is a later finding, easier to train when deep; a
    stack of such layers ends in one more norm. The paper names no epsilon.

    Args:
        dropout: float in [0, 1), rate on the sublayer's output.
        norm_first: bool, pre-norm instead of post-norm.
        epsilon: float, added to the variance. Statistics are float32
            whatever the dtype policy.
        **kwargs: the arguments of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, T, D)`.
        sublayer: a function of such a tensor to another of the same shape;
            Keras wants it by keyword.
        training: bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)`. A Keras mask on `inputs` passes through.

    Raises:
        ValueError: if `dropout` is not in [0, 1).

    Example:

    >>> add_norm = AddNorm(epsilon=0.0)
    >>> outputs = add_norm(
    ...     np.array([[[1.0, 3.0]]]), sublayer=lambda x: 2 * x)
    >>> keras.ops.convert_to_numpy(outputs).round(3)
    array([[[-1.,  1.]]], dtype=float32)
    """

    def __init__(self, dropout=0.0, norm_first=False, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        check_rate(dropout=dropout)
        self.supports_masking = True
        self.dropout = dropout
        self.norm_first = norm_first
        self.epsilon = epsilon
        self.norm = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=self.dtype_policy
        )
        self.output_dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.norm.build(input_shape)

    def call(self, inputs, sublayer, training=None):
        if self.norm_first:
            outputs = sublayer(self.norm(inputs))
            return inputs + self.output_dropout(outputs, training=training)
        outputs = self.output_dropout(sublayer(inputs), training=training)
        return self.norm(inputs + outputs)

    def compute_output_shape(self, input_shape):
        # Written down, because JAX cannot trace a call that takes a function.
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "epsilon": self.epsilon,
        }
