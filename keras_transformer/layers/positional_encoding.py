"""Positional encoding (paper, section 3.5)."""

import keras
import numpy as np
from keras import ops


def positional_encoding(positions, d_model):
    """Computes the paper's waves for any positions.

    Column `2i` of the row for position `p` holds `sin(p / 10000^(2i/D))` and
    column `2i + 1` the cosine of the same angle.

    Args:
        positions: tensor `(...)` of positions, counted from 0.
        d_model: int, `D`; an odd width ends in a sine.

    Returns:
        float32 tensor `(..., D)`.
    """
    column = np.arange(d_model)
    rates = (10000.0 ** -(2.0 * (column // 2) / d_model)).astype("float32")
    angles = ops.expand_dims(ops.cast(positions, "float32"), -1) * rates
    return ops.where(column % 2 == 0, ops.sin(angles), ops.cos(angles))


@keras.saving.register_keras_serializable("keras_transformer")
class PositionalEncoding(keras.layers.Layer):
    """Adds a fixed wave to each position, so that attention can tell order.

    Attention sees a set: without this layer "dog bites man" and "man bites
    dog" look the same. The waves come from `positional_encoding`; nothing is
    learned and no largest length is built in.

    Paper: section 3.5. Same as the paper: sines and cosines interleave,
    positions start at 0. Different: nothing; odd widths work too.

    Call arguments:
        inputs: float tensor `(B, T, D)`, embeddings already times `sqrt(D)`;
            or `(R, D)`, all at one position.
        start: int or int scalar tensor, the position of the first. Zero
            when training; the step number when decoding token by token.

    Returns:
        Tensor like the inputs in the compute dtype. The waves are computed in
        float32 whatever the dtype policy, because float16 cannot tell
        position 2048 from 2049. A Keras mask on `inputs` passes through.

    Example:

    >>> layer = PositionalEncoding()
    >>> encoded = layer(np.zeros((1, 3, 4), "float32"))
    >>> np.round(ops.convert_to_numpy(encoded)[0, 1], 4)
    array([0.8415, 0.5403, 0.01  , 1.    ], dtype=float32)
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape):
        self.d_model = input_shape[-1]

    def call(self, inputs, start=0):
        positions = start
        if len(inputs.shape) == 3:
            positions = start + ops.arange(ops.shape(inputs)[1])
        encoding = positional_encoding(positions, self.d_model)
        return inputs + ops.cast(encoding, inputs.dtype)
