"""Small Transformers with random weights that have something to say."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import Transformer
from keras_transformer.decoding import Generator

SIZES = {
    "num_layers": 2,
    "d_model": 16,
    "num_heads": 2,
    "d_ff": 32,
    "dropout": 0.0,
    "output_bias": True,
}


def talkative(vocab_size=32, seed=5, eos_bias=2.0, **changes):
    """Makes a model whose outputs vary and now and then end.

    Large kernels and pre-norm let the source and the prefix matter; the bias
    makes eos reachable.
    """
    options = {**SIZES, "tying": "none", "norm_first": True, **changes}
    model = Transformer(vocab_size, vocab_size, **options)
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        if len(variable.shape) == 2:
            small = "embedding" in variable.path or "output_proj" in (
                variable.path
            )
            values = generator.normal(
                scale=0.25 if small else 0.5, size=variable.shape
            )
            variable.assign(values.astype("float32"))
    bias = np.zeros(vocab_size, "float32")
    bias[2] = eos_bias
    output_bias(model).assign(bias)
    return model


def output_bias(model):
    projection = model.output_projection or model.target_embedding
    return projection.bias


@pytest.fixture(scope="session")
def transformer():
    return talkative()


@pytest.fixture(scope="session")
def generator(transformer):
    return Generator(transformer)


@pytest.fixture(scope="session")
def make_transformer():
    """Makes other models: the function `talkative`."""
    return talkative


@pytest.fixture
def favour():
    """Raises the logits of some ids of a model while a test runs.

    Functions read variables, so this needs no new trace.
    """
    before = []

    def raise_bias(model, token_ids, amount):
        variable = output_bias(model)
        values = tf.convert_to_tensor(variable.value).numpy()
        before.append((variable, values))
        raised = values.copy()
        raised[token_ids] += amount
        variable.assign(raised)

    yield raise_bias
    for variable, values in reversed(before):
        variable.assign(values)
