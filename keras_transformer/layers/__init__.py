"""The parts of the Transformer as Keras layers (paper, sections 3.1-3.5).

They need Keras alone, on any backend, and work by themselves in any model.
"""

from keras_transformer.layers.add_norm import AddNorm
from keras_transformer.layers.attention import (
    KeysValues,
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from keras_transformer.layers.cache import FixedCache, GrowingCache
from keras_transformer.layers.decoder import Decoder
from keras_transformer.layers.decoder_layer import DecoderLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.embedding import TokenEmbedding
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.encoder_layer import EncoderLayer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.masks import (
    causal_mask,
    combine_masks,
    padding_mask,
)
from keras_transformer.layers.positional_encoding import (
    PositionalEncoding,
    positional_encoding,
)

__all__ = [
    "AddNorm",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "FixedCache",
    "GrowingCache",
    "KeysValues",
    "MultiHeadAttention",
    "PositionalEncoding",
    "TokenEmbedding",
    "causal_mask",
    "combine_masks",
    "padding_mask",
    "positional_encoding",
    "scaled_dot_product_attention",
]
