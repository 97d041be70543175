"""The length penalty by hand."""

import numpy as np
import pytest

from keras_transformer.decoding import gnmt_penalty


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    [
        (1, 0.6, 1.0),
        (7, 1.0, 2.0),
        (7, 2.0, 4.0),
        (7, -1.0, 0.5),
        (13, 0.0, 1.0),
        (31, 0.6, 2.930156),  # 6 ^ 0.6
    ],
)
def test_the_penalty_is_a_power_of_the_shifted_length(length, alpha, expected):
    assert float(gnmt_penalty(length, alpha)) == pytest.approx(expected)


def test_the_penalty_keeps_the_shape_of_the_lengths():
    lengths = np.array([[1, 7], [13, 19], [25, 31]], "int32")
    penalties = gnmt_penalty(lengths, 1.0)
    assert penalties.dtype == "float32"
    np.testing.assert_allclose(penalties, [[1, 2], [3, 4], [5, 6]])


@pytest.mark.parametrize("alpha", [-10.0, 10.0])
@pytest.mark.parametrize("length", [0, 1, 10_000])
def test_the_penalty_is_positive_and_finite_at_the_ends(length, alpha):
    assert 0.0 < float(gnmt_penalty(length, alpha)) < np.inf
