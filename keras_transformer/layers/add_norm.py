"""Add & Norm (paper, sections 3.1 and 5.4)."""

import keras

from keras_transformer.layers.arguments import check_rate
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.registered import (
    registered_function,
    registered_names,
)


@keras.saving.register_keras_serializable("keras_transformer")
class AddNorm(keras.layers.Layer):
    """Wraps a sublayer in dropout, a residual connection and a norm.

    - post-norm, the paper's: `LayerNorm(x + Dropout(Sublayer(x)))`
    - pre-norm (`norm_first`): `x + Dropout(Sublayer(LayerNorm(x)))`

    Paper: section 3.1 (residual, norm) and 5.4 (dropout before the addition).
    Different: `norm_first` is a later finding, easier to train when deep; a
    stack of such layers ends in one more norm. The paper names no epsilon.
    `make_norm` puts another norm in the place of LayerNorm.

    Args:
        dropout: float in [0, 1), rate on the sublayer's output.
        norm_first: bool, pre-norm instead of post-norm.
        epsilon: float, added to the variance. Statistics are float32
            whatever the dtype policy.
        make_norm: None, or a registered function of arguments of a Keras
            layer (`dtype`, maybe `name`) to a layer, the norm; it has an
            epsilon of its own.
        **kwargs: the arguments of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, T, D)`.
        sublayer: a function of such a tensor to another of the same shape;
            Keras wants it by keyword.
        training: bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)`. A Keras mask on `inputs` passes through.

    Raises:
        ValueError: if `dropout` is not in [0, 1), or `make_norm` not
            registered with Keras.

    Example:

    >>> add_norm = AddNorm(epsilon=0.0)
    >>> outputs = add_norm(
    ...     np.array([[[1.0, 3.0]]]), sublayer=lambda x: 2 * x)
    >>> keras.ops.convert_to_numpy(outputs).round(3)
    array([[[-1.,  1.]]], dtype=float32)
    """

    def __init__(
        self, dropout=0.0, norm_first=False, epsilon=1e-6, make_norm=None,
        **kwargs,
    ):  # fmt: skip
        super().__init__(**kwargs)
        check_rate(dropout=dropout)
        self.supports_masking = True
        self.dropout = dropout
        self.norm_first = norm_first
        self.epsilon = epsilon
        self.make_norm = registered_function("make_norm", make_norm)
        self.norm = self._new_norm()
        self.output_dropout = Dropout(dropout, dtype=self.dtype_policy)

    def _new_norm(self, **arguments):
        arguments["dtype"] = self.dtype_policy
        if self.make_norm is not None:
            return self.make_norm(**arguments)
        return keras.layers.LayerNormalization(
            epsilon=self.epsilon, **arguments
        )

    def final_norm(self):
        """Makes the norm after a stack of pre-norm layers, else None.

        Their residual stream is never normalised, so the stack must be.
        """
        return self._new_norm(name="final_norm") if self.norm_first else None

    def build(self, input_shape):
        self.norm.build(input_shape)

    def call(self, inputs, sublayer, training=None):
        return self.after(inputs, sublayer(self.before(inputs)), training)

    def before(self, inputs):
        """Gives what the sublayer reads."""
        return self.norm(inputs) if self.norm_first else inputs

    def after(self, inputs, outputs, training=None):
        """Adds what the sublayer made of `before(inputs)` to the inputs."""
        states = inputs + self.output_dropout(outputs, training=training)
        return states if self.norm_first else self.norm(states)

    def compute_output_shape(self, input_shape):
        # Written down, because JAX cannot trace a call that takes a function.
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "epsilon": self.epsilon,
            **registered_names(make_norm=self.make_norm),
        }
