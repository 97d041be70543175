"""Calls of the decoding functions with NumPy in and NumPy out."""

import numpy as np

from keras_transformer.decoding import SIGNATURES, Hypotheses

DTYPES = {
    argument.name: argument.dtype
    for signature in SIGNATURES.values()
    for argument in signature.inputs
}


def as_arrays(inputs):
    """Gives inputs of a signature their types."""
    return {
        name: np.asarray(value, DTYPES[name]) for name, value in inputs.items()
    }


def call(function, source_ids, **inputs):
    """Calls a function of a `Generator`; inputs not given have defaults."""
    result = function(**as_arrays({"source_ids": source_ids, **inputs}))
    return {name: tensor.numpy() for name, tensor in result.items()}


def decode(function, source_ids, **options):
    """As `call`, for `greedy`, `beam` and `sample`."""
    return Hypotheses(**call(function, source_ids, **options))


def seeds(count, first=-7):
    """Gives each row a seed of its own."""
    return np.array([[first, i] for i in range(count)]).reshape(count, 2)


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
