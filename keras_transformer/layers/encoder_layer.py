"""One layer of the encoder (paper, section 3.1 and Figure 1, left)."""

import keras

from keras_transformer.layers.add_norm import AddNorm
from keras_transformer.layers.arguments import check_rate, check_width
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.stack import layer_config


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderLayer(keras.layers.Layer):
    """Lets each position read the whole sentence, then think by itself.

    Self-attention and feed-forward network, each in Add & Norm.

    Paper: section 3.1 and Figure 1 (left). Different: `norm_first`,
    `attention_dropout` and `feed_forward_dropout` are options beyond it, off
    by default.

    Args:
        d_model: int, `D`.
        num_heads: int, `H`.
        d_ff: int, `F`.
        d_k: int, width of the queries and keys of one head, or None for
            `D / H`.
        d_v: int, width of the values of one head, or None for `D / H`.
        dropout: float in [0, 1), rate on the output of each sublayer.
        attention_dropout: float in [0, 1), rate on the attention weights.
        feed_forward_dropout: float in [0, 1), rate inside the feed-forward
            network.
        activation: a Keras activation or its name.
        norm_first: bool, pre-norm instead of post-norm.
        epsilon: float, of the layer norms.
        **kwargs: the arguments of every Keras layer.

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
        self,
        d_model,
        num_heads,
        d_ff,
        d_k=None,
        d_v=None,
        dropout=0.0,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
        activation="relu",
        norm_first=False,
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_rate(
            dropout=dropout,
            attention_dropout=attention_dropout,
            feed_forward_dropout=feed_forward_dropout,
        )
        self.supports_masking = True
        policy = self.dtype_policy
        self.self_attention = MultiHeadAttention(
            d_model, num_heads, d_k, d_v, attention_dropout, dtype=policy
        )
        self.feed_forward = FeedForward(
            d_model, d_ff, feed_forward_dropout, activation, dtype=policy
        )
        self.self_attention_norm = AddNorm(
            dropout, norm_first, epsilon, dtype=policy
        )
        self.feed_forward_norm = AddNorm(
            dropout, norm_first, epsilon, dtype=policy
        )

    def build(self, input_shape):
        check_width(self.self_attention.d_model, input_shape)
        self.self_attention.build(input_shape, input_shape)
        self.self_attention_norm.build(input_shape)
        self.feed_forward.build(input_shape)
        self.feed_forward_norm.build(input_shape)

    def call(self, inputs, attention_mask=None, training=None, mask=None):
        def attend(states):
            return self.self_attention(
                states,
                states,
                attention_mask=attention_mask,
                value_mask=mask,
                training=training,
            )

        def think(states):
            return self.feed_forward(states, training=training)

        states = self.self_attention_norm(
            inputs, sublayer=attend, training=training
        )
        return self.feed_forward_norm(states, sublayer=think, training=training)

    def get_config(self):
        return {**super().get_config(), **layer_config(self)}
