"""What is dropped is even, independent and repeatable."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Dropout
from tests.support.backend import compiled, input_gradients

SHAPE = (31, 37, 41)


def masks(rate, count=6, seed=5, shape=SHAPE):
    layer = Dropout(rate, seed=seed)
    ones = ops.ones(shape)
    return np.stack(
        [
            ops.convert_to_numpy(layer(ones, training=True)) > 0
            for _ in range(count)
        ]
    )


def within(share, expected, count, sigmas=4.5):
    return (
        abs(share - expected)
        < sigmas * (expected * (1 - expected) / count) ** 0.5
    )


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.3, 0.9])
def test_the_rate_is_met_everywhere(rate):
    kept = masks(rate)
    assert within(kept.mean(), 1 - rate, kept.size)
    for axis in range(kept.ndim):
        others = tuple(a for a in range(kept.ndim) if a != axis)
        size = kept.size // kept.shape[axis]
        for share in kept.mean(axis=others):
            assert within(share, 1 - rate, size)


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_neighbours_calls_and_layers_are_independent(rate):
    kept = masks(rate)
    other_layer = masks(rate, seed=6)
    pairs = [
        (kept[1:], kept[:-1]),
        (kept[2:], kept[:-2]),
        (kept[:, 1:], kept[:, :-1]),
        (kept[:, :, 1:], kept[:, :, :-1]),
        (kept[..., 1:], kept[..., :-1]),
        (kept[..., 4:], kept[..., :-4]),
        (kept, other_layer),
        (kept[1:], other_layer[:-1]),
    ]
    for one, other in pairs:
        share = (one & other).mean()
        assert within(share, (1 - rate) ** 2, one.size)


def test_a_word_of_bits_is_even():
    """Runs of eight neighbours take all 256 patterns alike."""
    bits = masks(0.5, count=8, shape=(40_000,)).reshape(8, -1, 8)
    patterns = np.packbits(bits, axis=-1).ravel()
    counts = np.bincount(patterns, minlength=256)
    expected = patterns.size / 256
    chi_square = ((counts - expected) ** 2 / expected).sum()
    # 255 degrees of freedom: mean 255, standard deviation 22.6.
    assert abs(chi_square - 255) < 4.5 * 22.6


def test_what_is_kept_is_scaled_and_passes_the_gradient():
    inputs = np.random.default_rng(3).normal(size=(7, 11)).astype("float32")
    layer = Dropout(0.3, seed=2)
    outputs = ops.convert_to_numpy(layer(inputs, training=True))
    kept = outputs != 0
    np.testing.assert_allclose(outputs[kept], inputs[kept] / 0.7, rtol=1e-6)
    again = Dropout(0.3, seed=2)
    (gradient,) = input_gradients(
        lambda x: ops.sum(again(x, training=True)), inputs
    )
    np.testing.assert_allclose(gradient, kept / 0.7, rtol=1e-6)


def test_the_seed_decides_and_every_call_differs():
    first = masks(0.5)
    assert np.array_equal(first, masks(0.5))
    assert not np.array_equal(first, masks(0.5, seed=6))
    assert len({mask.tobytes() for mask in first}) == len(first)


def test_compiled_by_xla_it_drops_the_same():
    inputs = ops.ones((5, 7, 11))
    eager, built = Dropout(0.4, seed=9), Dropout(0.4, seed=9)
    expected = [
        ops.convert_to_numpy(eager(inputs, training=True)) for _ in range(2)
    ]
    if keras.backend.backend() == "jax":
        found = compiled(lambda x: built(x, training=True))(inputs)
        np.testing.assert_array_equal(found, expected[0])
    else:
        call = compiled(lambda x: built(x, training=True))
        for one in expected:
            np.testing.assert_array_equal(call(inputs), one)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_types_stay(dtype):
    layer = Dropout(0.5, dtype=dtype)
    outputs = layer(np.ones((3, 5)), training=True)
    assert keras.backend.standardize_dtype(outputs.dtype) == (
        layer.compute_dtype
    )
    values = np.unique(ops.convert_to_numpy(ops.cast(outputs, "float32")))
    assert set(values) <= {0.0, 2.0}


def test_without_training_or_rate_nothing_is_dropped():
    inputs = np.ones((3, 5), "float32")
    for layer, training in (
        (Dropout(0.5), False),
        (Dropout(0.5), None),
        (Dropout(0.0), True),
    ):
        np.testing.assert_array_equal(layer(inputs, training=training), inputs)


def test_it_is_saved_and_loaded_like_the_layer_of_keras():
    layer = Dropout(0.25, seed=3, name="drop")
    config = keras.saving.serialize_keras_object(layer)
    again = keras.saving.deserialize_keras_object(config)
    assert isinstance(again, Dropout)
    assert again.get_config() == layer.get_config()
    assert isinstance(layer, keras.layers.Dropout)
