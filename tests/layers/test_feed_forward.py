import numpy as np
import pytest

from keras_transformer.layers import FeedForward
from tests.support.small_models import difference, randomize, to_numpy

INPUTS = np.random.default_rng(0).normal(size=(2, 3, 11)).astype("float32")


def built(**arguments):
    layer = FeedForward(d_model=11, d_ff=13, **arguments)
    layer.build(INPUTS.shape)
    return randomize(layer)


def by_hand(layer, activation):
    w_1, b_1, w_2, b_2 = [to_numpy(weight) for weight in layer.weights]
    return activation(INPUTS @ w_1 + b_1) @ w_2 + b_2


def test_equals_the_formula():
    layer = built()
    expected = by_hand(layer, lambda x: np.maximum(x, 0))
    assert difference(layer(INPUTS), expected) < 1e-5


def test_activation_is_free():
    layer = built(activation="tanh")
    assert difference(layer(INPUTS), by_hand(layer, np.tanh)) < 1e-5


def test_each_position_is_by_itself():
    layer = built()
    alone = layer(INPUTS[:, 1:2])
    assert difference(alone, layer(INPUTS)[:, 1:2]) < 1e-6


def test_dropout_is_on_the_inner_layer_when_training():
    layer = built(dropout=0.5)
    inference = layer(INPUTS)
    assert difference(inference, layer(INPUTS, training=False)) == 0
    assert difference(inference, by_hand(layer, lambda x: np.maximum(x, 0))) < (
        1e-5
    )
    trained = to_numpy(layer(INPUTS, training=True))
    assert difference(inference, trained) > 1e-3
    # Dropped inner units leave no zeros in the output, dropped outputs would.
    assert np.all(trained != 0)


@pytest.mark.parametrize("d_ff", [1, 13])
def test_parameters_are_two_matrices_and_two_biases(d_ff):
    layer = FeedForward(d_model=11, d_ff=d_ff)
    layer(INPUTS)
    assert layer.count_params() == 11 * d_ff + d_ff + d_ff * 11 + 11
