"""Calls of the decoding functions with NumPy in and NumPy out."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Hypotheses


def decode(function, source_ids, **options):
    """Calls a function of a `Generator`; options not given have defaults."""
    tensors = {
        name: tf.constant(
            value, tf.float32 if name == "length_penalty" else tf.int32
        )
        for name, value in options.items()
    }
    result = function(source_ids=tf.constant(source_ids), **tensors)
    return Hypotheses(
        **{name: tensor.numpy() for name, tensor in result.items()}
    )


def kept_ids(result):
    """Lists the generated ids of each hypothesis, without padding."""
    lengths = result.lengths.ravel()
    rows = result.token_ids.reshape(len(lengths), result.token_ids.shape[-1])
    return [
        tuple(ids[:length].tolist())
        for ids, length in zip(rows, lengths, strict=True)
    ]


def random_sources(count, seed, width=13, vocab_size=32):
    """Draws padded sources of 1 to `width - 1` pieces and eos."""
    generator = np.random.default_rng(seed)
    source_ids = np.zeros((count, width), "int32")
    for row in source_ids:
        length = generator.integers(1, width)
        row[:length] = generator.integers(4, vocab_size, length)
        row[length] = 2
    return source_ids
