"""The encoder: a stack of layers (paper, section 3.1)."""

import keras

from keras_transformer.layers.arguments import check_positive
from keras_transformer.layers.encoder_layer import EncoderLayer


@keras.saving.register_keras_serializable("keras_transformer")
class Encoder(keras.layers.Layer):
    """A stack of encoder layers: from vectors of words to the memory.

    Paper: section 3.1. Different: with `norm_first` the stack ends in a norm,
    since the residual stream of pre-norm layers is never normalised.

    Args:
        num_layers: int, `N`.
        **options: those of `LayerOptions`, and the `name`, `dtype` and
            `trainable` of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, S, D)`. A Keras mask on it hides padding.
        attention_mask: bool tensor that broadcasts to `(B, S, S)`, usually
            `padding_mask(source_ids)`, or None.
        training: bool, whether dropout is on.

    Returns:
        Float tensor `(B, S, D)`, the memory.

    Raises:
        ValueError: if `num_layers` is not a positive int, and as
            `EncoderLayer`.
    """

    def __init__(
        self, num_layers, *, name=None, dtype=None, trainable=True, **options
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        check_positive(num_layers=num_layers)
        self.supports_masking = True
        self.layers = [
            EncoderLayer(name=f"layer_{i}", dtype=self.dtype_policy, **options)
            for i in range(num_layers)
        ]
        self.final_norm = self.layers[0].feed_forward_norm.final_norm()

    def build(self, input_shape):
        for layer in self.layers:
            layer.build(input_shape)
        if self.final_norm is not None:
            self.final_norm.build(input_shape)

    def call(self, inputs, attention_mask=None, training=None, mask=None):
        states = inputs
        for layer in self.layers:
            states = layer(
                states,
                attention_mask=attention_mask,
                training=training,
                mask=mask,
            )
        return states if self.final_norm is None else self.final_norm(states)

    def compute_output_shape(self, input_shape):
        # Written down, so that making a model need not trace the layers.
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            **self.layers[0].options.config(),
            "num_layers": len(self.layers),
        }
