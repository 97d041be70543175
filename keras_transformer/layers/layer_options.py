"""The sizes of a layer, and what may be chosen about it: told once."""

import dataclasses

import keras

from keras_transformer.layers.add_norm import AddNorm
from keras_transformer.layers.arguments import check_rate
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.registered import registered_names


@dataclasses.dataclass(frozen=True)
class LayerOptions:
    """What makes the sublayers of an encoder or decoder layer.

    `EncoderLayer`, `DecoderLayer`, `Encoder`, `Decoder` and `Transformer`
    take these as keyword arguments.

    Different from the paper: `norm_first`, `attention_dropout`,
    `feed_forward_dropout`, `make_norm` and `rotate` are options beyond it,
    off by default. A function must be registered with
    `keras.saving.register_keras_serializable`, so that a saved model can name
    it; docs/variants.md shows both.

    Args:
        d_model: int, `D`.
        num_heads: int, `H`.
        d_ff: int, `F`.
        d_k: int, width of the queries and keys of one head, or None for
            `D / H`.
        d_v: int, width of the values of one head, or None for `D / H`.
        dropout: float in [0, 1), `P_drop`, rate on the output of each
            sublayer (section 5.4).
        attention_dropout: float in [0, 1), rate on the attention weights.
        feed_forward_dropout: float in [0, 1), rate inside the feed-forward
            network.
        activation: a Keras activation or its name.
        norm_first: bool, pre-norm instead of post-norm.
        epsilon: float, of the layer norms.
        make_norm: None for layer norms, or a function that makes another
            norm, as of `AddNorm`; it has an epsilon of its own.
        rotate: None, or a function `(states, positions) -> states` that
            self-attention applies to its queries and keys, as of
            `MultiHeadAttention`. A `Transformer` then adds no waves.

    Raises:
        ValueError: naming the rate that is not in [0, 1). The sublayers check
            the rest.
    """

    d_model: int
    num_heads: int
    d_ff: int
    d_k: int = None
    d_v: int = None
    dropout: float = 0.0
    attention_dropout: float = 0.0
    feed_forward_dropout: float = 0.0
    activation: object = "relu"
    norm_first: bool = False
    epsilon: float = 1e-6
    make_norm: object = None
    rotate: object = None

    def __post_init__(self):
        check_rate(
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            feed_forward_dropout=self.feed_forward_dropout,
        )

    def attention(self, dtype, rotate=None):
        """Makes `MultiHeadAttention`, whose policy is `dtype`."""
        return MultiHeadAttention(
            self.d_model,
            self.num_heads,
            self.d_k,
            self.d_v,
            self.attention_dropout,
            rotate=rotate,
            dtype=dtype,
        )

    def feed_forward(self, dtype):
        """Makes `FeedForward`, whose policy is `dtype`."""
        return FeedForward(
            self.d_model,
            self.d_ff,
            self.feed_forward_dropout,
            self.activation,
            dtype=dtype,
        )

    def add_norm(self, dtype):
        """Makes `AddNorm`, whose policy is `dtype`."""
        return AddNorm(
            self.dropout,
            self.norm_first,
            self.epsilon,
            self.make_norm,
            dtype=dtype,
        )

    def config(self):
        """Gives these arguments as Keras saves them; variants if given."""
        activation = keras.activations.get(self.activation)
        config = dict(
            vars(self), activation=keras.activations.serialize(activation)
        )
        variants = {name: config.pop(name) for name in ("make_norm", "rotate")}
        return {**config, **registered_names(**variants)}
