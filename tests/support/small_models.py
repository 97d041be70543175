"""Models and batches of prime sizes, so that a swapped axis cannot pass."""

import functools

import numpy as np
from keras import ops

from keras_transformer import Transformer

SIZES = {
    "num_layers": 2,
    "d_model": 11,
    "num_heads": 3,
    "d_ff": 13,
    "d_k": 5,
    "d_v": 7,
    "dropout": 0.0,
}
VOCAB_SIZE = 17


def small_transformer(seed=0, **changes):
    """Makes a small model whose every weight is random."""
    model = Transformer(**{"source_vocab_size": VOCAB_SIZE, **SIZES, **changes})
    return randomize(model, seed)


@functools.cache
def shared_transformer(**changes):
    """A small model for tests that leave it as it is."""
    return small_transformer(**changes)


def randomize(layer, seed=0):
    """Gives every weight random values: biases off 0, gains off 1."""
    generator = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        values = generator.normal(scale=0.3, size=variable.shape)
        gain = 1.0 if variable.name in ("gamma", "scale") else 0.0
        variable.assign((gain + values).astype("float32"))
    return layer


def random_ids(lengths, seed=0, vocab_size=VOCAB_SIZE, width=None):
    """Draws padded rows of ordinary ids that end in eos."""
    generator = np.random.default_rng(seed)
    ids = np.zeros((len(lengths), width or max(lengths)), "int32")
    for row, length in enumerate(lengths):
        ids[row, :length] = generator.integers(4, vocab_size, length)
        ids[row, length - 1] = 2
    return ids


def random_batch(source_lengths, target_lengths, seed=0):
    """Draws a batch for `fit`: inputs and labels, shifted by bos."""
    labels = random_ids(target_lengths, seed + 1)
    inputs = {
        "source_ids": random_ids(source_lengths, seed),
        "target_ids": shifted(labels),
    }
    return inputs, labels


def shifted(labels):
    """Puts bos before the labels and drops the last one."""
    return np.pad(labels, ((0, 0), (1, 0)), constant_values=1)[:, :-1]


def to_numpy(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def difference(first, second):
    """Gives the largest absolute difference of two tensors."""
    return np.abs(to_numpy(first).astype("float64") - to_numpy(second)).max()
