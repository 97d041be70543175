import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import (
    Decoder,
    GrowingCache,
    KeysValues,
    Step,
    padding_mask,
)
from tests.support.small_models import difference, randomize, to_numpy

SIZES = {"d_model": 11, "num_heads": 3, "d_ff": 13, "d_k": 5, "d_v": 7}


def keys_values(number, positions=1):
    """Keys and values of positions, all equal to a number."""
    return KeysValues(
        ops.full((2, 3, positions, 5), float(number)),
        ops.full((2, 3, positions, 7), -float(number)),
    )


def test_growing_cache_holds_what_was_appended():
    cache = GrowingCache.empty(2, 3, 5, 7, "float32")
    assert tuple(cache.keys.shape) == (2, 3, 0, 5)
    for number in range(1, 5):
        cache = cache.append(keys_values(number))
    assert tuple(cache.values.shape) == (2, 3, 4, 7)
    np.testing.assert_array_equal(
        to_numpy(cache.keys)[1, 2, :, 4], [1, 2, 3, 4]
    )
    np.testing.assert_array_equal(
        to_numpy(cache.values)[0, 0, :, 6], [-1, -2, -3, -4]
    )


def test_hypotheses_append_one_position_each():
    cache = GrowingCache.empty(2, 3, 5, 7, "float32")
    cache = cache.append(keys_values(1, 3)).append(keys_values(2, 3))
    np.testing.assert_array_equal(
        to_numpy(cache.keys)[1, 2, :, 4], [1, 1, 1, 2, 2, 2]
    )


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_empty_cache_has_the_dtype_asked_for(dtype):
    cache = GrowingCache.empty(2, 3, 5, 7, dtype)
    assert to_numpy(cache.keys).dtype == dtype
    assert to_numpy(cache.values).dtype == dtype
    assert cache.keys.shape[0] == cache.values.shape[0] == 2


def test_appending_leaves_the_old_cache_as_it_was():
    cache = GrowingCache.empty(2, 3, 5, 7, "float32")
    cache.append(keys_values(1))
    assert tuple(cache.keys.shape) == (2, 3, 0, 5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_step_by_step_equals_all_at_once(norm_first):
    decoder = Decoder(num_layers=2, norm_first=norm_first, **SIZES)
    decoder.build((None, None, 11), (None, None, 11))
    randomize(decoder)
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(2, 7, 11)).astype("float32")
    memory = generator.normal(size=(2, 3, 11)).astype("float32")
    mask = padding_mask(np.array([[5, 2, 0], [6, 7, 2]]))

    expected = decoder(inputs, memory, memory_attention_mask=mask)
    caches = decoder.empty_caches(2)
    projected = decoder.project_memory(memory)
    for position in range(7):
        outputs, caches, weights = decoder.step(
            inputs[:, position], projected, mask, caches, Step(position)
        )
        assert difference(outputs, expected[:, position]) < 1e-5
    assert tuple(weights.shape) == (2, 3, 1, 3)
    np.testing.assert_allclose(to_numpy(weights).sum(-1), 1, rtol=1e-5)
    assert np.all(to_numpy(weights)[0, ..., 2] == 0)
