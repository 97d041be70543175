"""The parts of the Transformer as Keras layers (paper, sections 3.1-3.5).

They need Keras alone, on any backend, and work by themselves in any model.
Reading order is import order:

    arguments            checks of sizes and rates
    registered           functions that a user gives, such as another norm
    masks                which position may look at which (3.2.3)
    embedding            embeddings and the output projection (3.4)
    positional_encoding  the paper's waves (3.5)
    dropout              drawn by a hash (5.4)
    step                 one position of decoding, and what makes it fast
    attention            scaled dot-product and multi-head attention (3.2)
    feed_forward         the position-wise network (3.3)
    add_norm             residual connection and norm around them (3.1)
    layer_options        the sizes of a layer, told once
    encoder_layer        Figure 1, left
    encoder              a stack of them
    decoder_layer        Figure 1, right
    decoder              a stack of them
"""

from keras_transformer.layers.add_norm import AddNorm
from keras_transformer.layers.attention import (
    KeysValues,
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from keras_transformer.layers.decoder import Decoder
from keras_transformer.layers.decoder_layer import DecoderLayer
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.embedding import TokenEmbedding
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.encoder_layer import EncoderLayer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.layer_options import LayerOptions
from keras_transformer.layers.masks import (
    causal_mask,
    combine_masks,
    padding_mask,
)
from keras_transformer.layers.positional_encoding import (
    PositionalEncoding,
    positional_encoding,
)
from keras_transformer.layers.step import GrowingCache, Step

__all__ = [
    "AddNorm",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GrowingCache",
    "KeysValues",
    "LayerOptions",
    "MultiHeadAttention",
    "PositionalEncoding",
    "Step",
    "TokenEmbedding",
    "causal_mask",
    "combine_masks",
    "padding_mask",
    "positional_encoding",
    "scaled_dot_product_attention",
]
