import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import AddNorm, EncoderLayer
from tests.support.backend import all_finite, gradients
from tests.support.small_models import difference, randomize, to_numpy

INPUTS = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")


def built(**arguments):
    layer = AddNorm(**arguments)
    layer.build(INPUTS.shape)
    return randomize(layer)


def normalised(layer, inputs):
    gamma, beta = [to_numpy(weight) for weight in layer.norm.weights]
    centred = inputs - inputs.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + layer.epsilon) * gamma + beta


def test_post_norm_normalises_the_sum():
    layer = built()
    outputs = layer(INPUTS, sublayer=lambda x: 3 * x)
    assert difference(outputs, normalised(layer, 4 * INPUTS)) < 1e-5


def test_pre_norm_leaves_the_residual_alone():
    layer = built(norm_first=True)
    outputs = layer(INPUTS, sublayer=lambda x: 3 * x)
    expected = INPUTS + 3 * normalised(layer, INPUTS)
    assert difference(outputs, expected) < 1e-5


def test_dropout_falls_on_the_sublayer_and_not_on_the_residual():
    layer = built(dropout=0.5, norm_first=True)
    ones = to_numpy(
        layer(INPUTS, sublayer=lambda x: 0 * x + 1, training=True) - INPUTS
    )
    assert set(np.round(ones, 4).ravel()) == {0.0, 2.0}
    inference = layer(INPUTS, sublayer=lambda x: 0 * x + 1)
    assert difference(inference, INPUTS + 1) < 1e-6


@pytest.mark.parametrize("norm_first", [False, True])
def test_before_and_after_are_what_call_does(norm_first):
    layer = built(norm_first=norm_first)
    outputs = layer.after(INPUTS, 3 * layer.before(INPUTS))
    expected = layer(INPUTS, sublayer=lambda x: 3 * x)
    assert difference(outputs, expected) == 0


def test_default_epsilon_is_far_below_that_of_keras():
    assert AddNorm().get_config()["epsilon"] == 1e-6
    assert AddNorm(epsilon=0.1).norm.epsilon == 0.1


@pytest.mark.parametrize("norm_first", [False, True])
def test_keras_mask_passes_through(norm_first):
    embedding = keras.layers.Embedding(17, 5, mask_zero=True)
    ids = np.array([[3, 2, 0]])
    outputs = AddNorm(norm_first=norm_first)(
        embedding(ids), sublayer=lambda x: x
    )
    np.testing.assert_array_equal(
        to_numpy(outputs._keras_mask), [[True, True, False]]
    )


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("constant", [0.0, -77.0])
def test_constant_features_stay_finite_in_half_precision(
    dtype, norm_first, constant
):
    layer = EncoderLayer(8, 2, 16, norm_first=norm_first, dtype=dtype)
    inputs = keras.Variable(np.full((2, 3, 8), constant, "float32"))
    layer.build(inputs.shape)

    def total():
        outputs = layer(ops.convert_to_tensor(inputs))
        return ops.sum(ops.cast(outputs, "float32"))

    result, found = gradients(total, [inputs, *layer.trainable_variables])
    assert np.isfinite(result)
    assert all_finite(found)


def test_statistics_are_float32_under_mixed_float16():
    # The variance of these, 4e8, is beyond float16.
    inputs = np.array([[[-20000.0, 20000.0, 0.0, 0.0]]], "float32")
    layer = AddNorm(dtype="mixed_float16")
    outputs = layer(inputs, sublayer=lambda x: 0 * x)
    expected = inputs / np.sqrt(2e8)
    assert difference(ops.cast(outputs, "float32"), expected) < 1e-3
