"""The penalties of length and coverage by hand."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import LengthPenalty, coverage_penalty
from keras_transformer.decoding.penalties import GNMT, POWER


@pytest.mark.parametrize(
    ("form", "length", "alpha", "expected"),
    [
        (GNMT, 1, 0.6, 1.0),
        (GNMT, 7, 1.0, 2.0),
        (GNMT, 7, 2.0, 4.0),
        (GNMT, 7, -1.0, 0.5),
        (GNMT, 13, 0.0, 1.0),
        (GNMT, 31, 0.6, 2.930156),  # 6 ^ 0.6
        (POWER, 1, 0.6, 1.0),
        (POWER, 7, 1.0, 7.0),
        (POWER, 7, 2.0, 49.0),
        (POWER, 8, -1.0, 0.125),
        (POWER, 13, 0.0, 1.0),
        (POWER, 6, 0.6, 2.930156),
    ],
)
def test_the_penalty_is_a_power_of_the_length(form, length, alpha, expected):
    assert float(LengthPenalty(alpha, form)(length)) == pytest.approx(expected)


def test_the_forms_are_0_and_1_and_the_first_is_the_default():
    assert (GNMT, POWER) == (0, 1)
    assert float(LengthPenalty(1.0)(7)) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("form", "expected"),
    [(GNMT, [[1, 2], [3, 4], [5, 6]]), (POWER, [[1, 7], [13, 19], [25, 31]])],
)
def test_the_penalty_keeps_the_shape_of_the_lengths(form, expected):
    lengths = np.array([[1, 7], [13, 19], [25, 31]], "int32")
    penalties = LengthPenalty(tf.constant(1.0), tf.constant(form))(lengths)
    assert penalties.dtype == "float32"
    np.testing.assert_allclose(penalties, expected)


@pytest.mark.parametrize("form", [GNMT, POWER])
@pytest.mark.parametrize("alpha", [-10.0, 10.0])
@pytest.mark.parametrize("length", [0, 1, 10_000])
def test_the_penalty_is_positive_and_finite_at_the_ends(length, alpha, form):
    assert 0.0 < float(LengthPenalty(alpha, form)(length)) < np.inf


@pytest.mark.parametrize("form", [GNMT, POWER])
@pytest.mark.parametrize("alpha", [-2.0, -0.5, 0.6, 2.0])
def test_the_penalty_only_rises_or_only_falls_with_the_length(alpha, form):
    """Bounds on the scores that are still to come rest on it."""
    changes = np.diff(LengthPenalty(alpha, form)(np.arange(1, 400)))
    assert (np.sign(changes) == np.sign(alpha)).all()


def test_coverage_costs_the_logarithm_of_what_was_left_out():
    coverage = np.array([[1.0, 0.5, 0.25], [0.1, 1.0, 1.0]], "float32")
    expected = np.log([0.125, 0.1])
    np.testing.assert_allclose(coverage_penalty(coverage, 1.0), expected, 1e-6)
    np.testing.assert_allclose(
        coverage_penalty(coverage, tf.constant(0.2)), 0.2 * expected, 1e-6
    )


def test_attention_above_1_earns_nothing():
    coverage = np.array([[1.0, 0.5], [7.0, 0.5], [1e9, 0.5]], "float32")
    np.testing.assert_allclose(
        coverage_penalty(coverage, 2.0), 3 * [2 * np.log(0.5)], 1e-6
    )


def test_what_was_never_attended_to_does_not_count():
    coverage = np.zeros((2, 3, 5), "float32")
    coverage[1, :, 3] = 0.5
    penalties = coverage_penalty(coverage, 1.0)
    assert penalties.dtype == "float32"
    np.testing.assert_allclose(
        penalties, [3 * [0.0], 3 * [np.log(0.5)]], rtol=1e-6
    )


@pytest.mark.parametrize("least", [1e-12, 1e-30, 1e-37])
def test_attention_that_all_but_vanishes_costs_a_finite_amount(least):
    penalty = float(coverage_penalty(np.array([least, 1.0], "float32"), 10.0))
    assert penalty == pytest.approx(10 * np.log(1e-10), rel=1e-6)


def test_coverage_that_is_off_costs_nothing():
    coverage = np.array([[0.5, 0.0], [1e-30, 2.0]], "float32")
    assert (coverage_penalty(coverage, 0.0).numpy() == 0.0).all()
