"""What tests of `fit` share."""

import keras
import numpy as np

from keras_transformer import MaskedCrossEntropy


class Batches(keras.utils.PyDataset):
    """Batches as they are, in order: (inputs, labels[, weights])."""

    def __init__(self, batches):
        super().__init__()
        self.batches = list(batches)

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]


def compile_model(
    model, optimizer=None, loss=None, few_steps=False, **arguments
):
    """Compiles in the way that is quickest: tests train for seconds."""
    if keras.backend.backend() == "jax":
        # Eager JAX compiles every operation by itself, which takes longer.
        quickest = {"jit_compile": True}
    else:
        quickest = {"jit_compile": False, "run_eagerly": few_steps}
    model.compile(
        optimizer=optimizer or keras.optimizers.SGD(0.1),
        loss=loss or MaskedCrossEntropy(),
        **{**quickest, **arguments},
    )
    return model


def fit(model, batches, epochs=1, **arguments):
    """Fits on batches in order; gives the history."""
    history = model.fit(
        Batches(batches), epochs=epochs, shuffle=False, verbose=0, **arguments
    )
    return history.history


def uniform_model(vocab_size=32):
    """Any ids in, logits of zero out, and weights that can learn."""
    return keras.Sequential(
        [
            keras.layers.Embedding(vocab_size, 3),
            keras.layers.Dense(vocab_size, kernel_initializer="zeros"),
        ]
    )


def weight_difference(first, second):
    """The largest difference of two lists of weights."""
    return max(np.abs(a - b).max() for a, b in zip(first, second, strict=True))
