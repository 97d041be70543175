"""One layer of the encoder (paper, section 3.1 and Figure 1, left)."""

import keras

from keras_transformer.layers.arguments import check_width
from keras_transformer.layers.layer_options import LayerOptions


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderLayer(keras.layers.Layer):
    """Lets each position read the whole sentence, then think by itself.

    Self-attention and feed-forward network, each in Add & Norm.

    Paper: section 3.1 and Figure 1 (left). Different: what `LayerOptions`
    names, all off by default.

    Args:
        d_model: int, `D`.
        num_heads: int, `H`.
        d_ff: int, `F`.
        **options: the others of `LayerOptions`, and the `name`, `dtype` and
            `trainable` of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, S, D)`. A Keras mask on it hides padding.
        attention_mask: bool tensor that broadcasts to `(B, S, S)`, True where
            a query may attend, or None.
        training: bool, whether dropout is on.

    Returns:
        Float tensor `(B, S, D)`.

    Raises:
        ValueError: as `MultiHeadAttention`, `FeedForward` and `AddNorm`.
    """

    def __init__(
        self, d_model, num_heads, d_ff, *, name=None, dtype=None,
        trainable=True, **options,
    ):  # fmt: skip
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.supports_masking = True
        options = LayerOptions(d_model, num_heads, d_ff, **options)
        policy = self.dtype_policy
        self.options = options
        self.self_attention = options.attention(policy, options.rotate)
        self.feed_forward = options.feed_forward(policy)
        self.self_attention_norm = options.add_norm(policy)
        self.feed_forward_norm = options.add_norm(policy)

    def build(self, input_shape):
        check_width(self.options.d_model, input_shape)
        self.self_attention.build(input_shape, input_shape)
        self.self_attention_norm.build(input_shape)
        self.feed_forward.build(input_shape)
        self.feed_forward_norm.build(input_shape)

    def call(self, inputs, attention_mask=None, training=None, mask=None):
        states = self.self_attention_norm.before(inputs)
        outputs = self.self_attention(
            states,
            states,
            attention_mask=attention_mask,
            value_mask=mask,
            training=training,
        )
        inputs = self.self_attention_norm.after(inputs, outputs, training)

        states = self.feed_forward_norm.before(inputs)
        outputs = self.feed_forward(states, training=training)
        return self.feed_forward_norm.after(inputs, outputs, training)

    def get_config(self):
        return {**super().get_config(), **self.options.config()}
