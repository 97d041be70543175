import math

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import PositionalEncoding, positional_encoding
from tests.support.numpy_transformer import position_vector
from tests.support.small_models import to_numpy


def encode(length, d_model, dtype="float32", start=0):
    layer = PositionalEncoding(dtype=dtype)
    return to_numpy(
        layer(np.zeros((1, length, d_model), "float32"), start=start)
    )[0]


@pytest.mark.parametrize("d_model", [1, 2, 5, 8, 64])
def test_waves_equal_the_formula_at_every_width(d_model):
    expected = [position_vector(p, d_model) for p in range(53)]
    np.testing.assert_allclose(encode(53, d_model), expected, atol=1e-5)


def test_odd_width_ends_in_a_sine():
    table = encode(7, 5)
    assert table.shape == (7, 5)
    np.testing.assert_array_equal(table[0], [0, 1, 0, 1, 0])
    assert table[1, 4] == pytest.approx(math.sin(10000 ** (-4 / 5)))


def test_width_of_one_is_a_sine():
    table = encode(7, 1)
    assert table.shape == (7, 1)
    np.testing.assert_allclose(table[:, 0], np.sin(np.arange(7)), atol=1e-6)


@pytest.mark.parametrize("dtype", ["mixed_float16", "float16"])
def test_half_precision_tells_far_positions_apart(dtype):
    table = encode(3000, 64, dtype)
    assert table.dtype == np.float16
    assert np.abs(table - encode(3000, 64)).max() <= 1e-3
    rows = {row.tobytes() for row in table[2049:2061]}
    assert len(rows) == 12


def test_float32_is_exact_enough_at_length_3000():
    expected = [position_vector(p, 6) for p in range(3000)]
    assert np.abs(encode(3000, 6) - expected).max() <= 1e-3


def test_start_is_the_position_of_the_first_input():
    whole = encode(11, 6)
    np.testing.assert_allclose(encode(4, 6, start=7), whole[7:], atol=1e-6)
    start = ops.convert_to_tensor(3, "int32")
    np.testing.assert_allclose(encode(1, 6, start=start), whole[3:4], atol=1e-6)


def test_waves_are_added_to_the_inputs():
    inputs = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("float32")
    np.testing.assert_allclose(
        to_numpy(PositionalEncoding()(inputs)), inputs + encode(3, 5), 1e-6
    )


def test_function_takes_any_positions():
    rows = to_numpy(positional_encoding(np.array([5, 0, 2048]), 6))
    assert rows.dtype == np.float32
    whole = encode(2049, 6)
    np.testing.assert_allclose(rows, whole[[5, 0, 2048]], atol=1e-6)
