"""Dropout (paper, section 5.4) whose random numbers cost next to nothing."""

import keras
import numpy as np
from keras import ops


@keras.saving.register_keras_serializable("keras_transformer")
class Dropout(keras.layers.Dropout):
    """As `keras.layers.Dropout`, but drawn by a hash that XLA can fuse.

    On a CPU TensorFlow's generator takes a fifth of a training step of a small
    model. Here the number of an element is hashed together with the state of
    Keras' own seed generator by a few integer operations, which XLA computes
    in the same loop as the product. The seeds and their states are those of
    Keras; which elements are dropped is not.

    Args:
        rate: float in [0, 1), the share that is dropped.
        **kwargs: `seed`, and those of every Keras layer.

    Call arguments:
        inputs: float tensor of any shape with fewer than 2**31 elements.
        training: bool, whether dropout is on.

    Returns:
        A tensor like the inputs; what is kept is divided by `1 - rate`.
    """

    def call(self, inputs, training=False):
        if not training or self.rate == 0 or self.noise_shape:
            return super().call(inputs, training=training)
        numbers = _random_uint32(self.seed_generator.next(), ops.shape(inputs))
        keep = numbers >= np.uint32(round(self.rate * 2**32))
        kept = inputs * ops.cast(1 / (1 - self.rate), inputs.dtype)
        return ops.where(keep, kept, ops.zeros_like(kept))


def _random_uint32(seed, shape):
    """Evenly distributed uint32 numbers, a function of two integers.

    Args:
        seed: int tensor `(2,)`.
        shape: tuple of int or scalar tensors.
    """
    size = 1
    for width in shape:
        size = size * width
    seed = ops.cast(seed, "uint32")
    # Neighbouring states of the generator become keys far apart.
    first = _mix(seed[0] + _mix(seed[1]))
    second = _mix(first + np.uint32(0x9E3779B9))
    places = ops.cast(ops.arange(size, dtype="int32"), "uint32")
    numbers = _mix(places * np.uint32(0x9E3779B1) + first, second)
    return ops.reshape(numbers, shape)


def _mix(number, key=None):
    """Two rounds of multiplying and folding, so that every bit counts."""
    number = _fold(number, 16) * np.uint32(0x7FEB352D)
    if key is not None:
        number = number + key
    number = _fold(number, 15) * np.uint32(0x846CA68B)
    return _fold(number, 16)


def _fold(number, bits):
    return ops.bitwise_xor(number, ops.right_shift(number, np.uint32(bits)))
