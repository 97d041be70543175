from functools import partial

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import (
    Decoder,
    FixedCache,
    GrowingCache,
    KeysValues,
    padding_mask,
)
from tests.support.small_models import difference, randomize, to_numpy

CACHES = {
    "growing": GrowingCache.empty,
    "fixed": partial(FixedCache.empty, length=7),
}
SIZES = {"d_model": 11, "num_heads": 3, "d_ff": 13, "d_k": 5, "d_v": 7}


def keys_values(number, rows=2):
    """Keys and values of one position, all equal to a number."""
    return KeysValues(
        ops.full((rows, 3, 1, 5), float(number)),
        ops.full((rows, 3, 1, 7), -float(number)),
    )


def test_growing_cache_holds_what_was_appended():
    cache = GrowingCache.empty(2, 3, 5, 7, "float32")
    assert tuple(cache.keys.shape) == (2, 3, 0, 5)
    for position in range(4):
        cache = cache.append(keys_values(position + 1), position)
        assert cache.mask(position) is None
    assert tuple(cache.values.shape) == (2, 3, 4, 7)
    np.testing.assert_array_equal(
        to_numpy(cache.keys)[1, 2, :, 4], [1, 2, 3, 4]
    )
    np.testing.assert_array_equal(
        to_numpy(cache.values)[0, 0, :, 6], [-1, -2, -3, -4]
    )


def test_fixed_cache_writes_one_slot_and_hides_the_later_ones():
    cache = FixedCache.empty(2, 3, 5, 7, "float32", length=4)
    for position in range(2):
        cache = cache.append(keys_values(position + 1), position)
    assert tuple(cache.keys.shape) == (2, 3, 4, 5)
    np.testing.assert_array_equal(
        to_numpy(cache.keys)[1, 2, :, 4], [1, 2, 0, 0]
    )
    np.testing.assert_array_equal(
        to_numpy(cache.values)[0, 0, :, 6], [-1, -2, 0, 0]
    )
    np.testing.assert_array_equal(
        to_numpy(cache.mask(1)), [[[True, True, False, False]]]
    )


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("empty", CACHES.values(), ids=CACHES)
def test_empty_cache_has_the_dtype_asked_for(empty, dtype):
    cache = empty(2, 3, 5, 7, dtype)
    assert to_numpy(cache.keys).dtype == dtype
    assert to_numpy(cache.values).dtype == dtype
    assert cache.keys.shape[0] == cache.values.shape[0] == 2


def test_appending_leaves_the_old_cache_as_it_was():
    cache = FixedCache.empty(2, 3, 5, 7, "float32", length=4)
    cache.append(keys_values(1), 0)
    assert not to_numpy(cache.keys).any()


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("empty", CACHES.values(), ids=CACHES)
def test_decoder_step_by_step_equals_all_at_once(empty, norm_first):
    decoder = Decoder(num_layers=2, norm_first=norm_first, **SIZES)
    decoder.build((None, None, 11), (None, None, 11))
    randomize(decoder)
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(2, 7, 11)).astype("float32")
    memory = generator.normal(size=(2, 3, 11)).astype("float32")
    mask = padding_mask(np.array([[5, 2, 0], [6, 7, 2]]))

    expected = decoder(inputs, memory, memory_attention_mask=mask)
    caches = [empty(2, 3, 5, 7, "float32") for _ in decoder.layers]
    projected = decoder.project_memory(memory)
    for position in range(7):
        outputs, caches, weights = decoder.step(
            inputs[:, position : position + 1],
            projected,
            mask,
            caches,
            position,
        )
        assert difference(outputs[:, 0], expected[:, position]) < 1e-5
    assert tuple(weights.shape) == (2, 3, 1, 3)
    np.testing.assert_allclose(to_numpy(weights).sum(-1), 1, rtol=1e-5)
    assert np.all(to_numpy(weights)[0, ..., 2] == 0)
