import numpy as np
import pytest

from keras_transformer.layers import (
    causal_mask,
    combine_masks,
    padding_mask,
)
from keras_transformer.layers.masks import implicit_mask
from tests.support.small_models import to_numpy


def test_padding_mask_is_true_on_real_tokens():
    mask = to_numpy(padding_mask(np.array([[5, 2, 0], [7, 6, 2]])))
    assert mask.dtype == bool
    np.testing.assert_array_equal(
        mask, [[[True, True, False]], [[True, True, True]]]
    )


def test_padding_mask_follows_the_pad_id():
    mask = to_numpy(padding_mask(np.array([[0, 2, 3, 3]]), pad_id=3))
    np.testing.assert_array_equal(mask, [[[True, True, False, False]]])


@pytest.mark.parametrize("length", [1, 2, 7])
def test_causal_mask_allows_the_past_and_oneself(length):
    mask = to_numpy(causal_mask(length))
    assert mask.dtype == bool
    assert mask.shape == (1, length, length)
    for query in range(length):
        for key in range(length):
            assert mask[0, query, key] == (key <= query)


def test_combined_masks_allow_what_all_allow():
    padding = padding_mask(np.array([[5, 2, 0], [0, 6, 2]]))
    combined = to_numpy(combine_masks(None, padding, None, causal_mask(3)))
    np.testing.assert_array_equal(
        combined.astype(int),
        [
            [[1, 0, 0], [1, 1, 0], [1, 1, 0]],
            [[0, 0, 0], [0, 1, 0], [0, 1, 1]],
        ],
    )


def test_combining_nothing_gives_none():
    assert combine_masks() is None
    assert combine_masks(None, None) is None


def test_a_single_mask_is_returned_as_it_is():
    mask = causal_mask(3)
    assert combine_masks(None, mask) is mask


def test_implicit_mask_has_an_axis_for_the_queries():
    assert implicit_mask(None) is None
    mask = to_numpy(implicit_mask(np.array([[True, False]])))
    np.testing.assert_array_equal(mask, [[[True, False]]])
