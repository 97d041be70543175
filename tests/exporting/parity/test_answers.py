"""How far apart two answers are."""

import math

import pytest

from keras_transformer.exporting.parity.answers import (
    difference,
    one_row,
    strip,
)

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("value", "padding", "stripped"),
    [
        ([5, 2, 0, 0], 0, [5, 2]),
        ([0, 5, 0, 2], 0, [0, 5, 0, 2]),
        ([0, 0], 0, []),
        ([], 0, []),
        ([[5, 2, 0], [0, 0, 0], [7, 0, 0]], 0, [[5, 2], [], [7]]),
        # Padding of both axes: of the target and of the source.
        ([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]], 0.0, [[0.5, 0.5]]),
        ([5, 3, 3], 3, [5]),
        ([5, 0, 0], None, [5, 0, 0]),
        ([False, False], None, [False, False]),
        (0.0, 0.0, 0.0),
        (7, None, 7),
    ],
)
def test_padding_at_the_ends_is_cut(value, padding, stripped):
    before = repr(value)
    assert strip(value, padding) == stripped
    assert repr(value) == before


def test_a_row_is_what_one_sentence_got_without_padding():
    outputs = {
        "token_ids": [[[5, 2, 9], [9, 9, 9]], [[5, 6, 2], [7, 2, 9]]],
        "lengths": [[2, 0], [3, 2]],
        "scores": [[-0.5, -INF], [-0.25, -0.0]],
        "finished": [[True, False], [True, True]],
    }
    assert one_row(outputs, 0, pad_id=9) == {
        "token_ids": [[5, 2]],
        "lengths": [2, 0],
        "scores": [-0.5, -INF],
        "finished": [True, False],
    }
    assert one_row(outputs, 1, pad_id=9)["token_ids"] == [[5, 6, 2], [7, 2]]
    teacher_forced = {
        "token_log_probs": [[-1.0, -2.0, 0.0]],
        "scores": [0.0],
        "attention": [[[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]],
    }
    assert one_row(teacher_forced, 0, pad_id=9) == {
        "token_log_probs": [-1.0, -2.0],
        "scores": 0.0,
        "attention": [[0.5, 0.5]],
    }


@pytest.mark.parametrize(
    ("found", "expected", "gap"),
    [
        (1.5, 1.25, 0.25),
        (-1.25, -1.5, 0.25),
        (0.0, -0.0, 0.0),
        ([0.5, 1.0, 2.0], [0.5, 1.5, 1.75], 0.5),
        ([[0.5], [1.0, 2.0]], [[0.5], [1.0, 2.25]], 0.25),
        ({"a": 1.0, "b": [3.0]}, {"a": 1.5, "b": [5.0]}, 2.0),
        ([], [], 0.0),
        ({}, {}, 0.0),
        # Beyond 10 the difference is one in ten.
        (1001.0, 1000.0, 0.01),
        (-99.0, -100.0, 0.1),
        (11.0, 10.0, 1.0),
        # Minus infinity marks an empty slot.
        (-INF, -INF, 0.0),
        ([-INF, 1.0], [-INF, 1.5], 0.5),
        (-INF, -1e30, INF),
        (-1e30, -INF, INF),
        (INF, -INF, INF),
        # NaN is never right.
        (NAN, NAN, INF),
        (NAN, 1.0, INF),
        (1.0, NAN, INF),
        ([0.5, NAN], [0.5, NAN], INF),
        # What is no float is equal or it is not.
        (3, 3, 0.0),
        (3, 4, INF),
        ([3, 4], [3, 5], INF),
        (True, True, 0.0),
        (True, False, INF),
        ("one", "one", 0.0),
        ("one", "two", INF),
        (["", "two"], ["", "two"], 0.0),
        # Lengths count.
        ([3], [3, 4], INF),
        ([3, 4], [3], INF),
        ([[5, 2]], [[5, 2], [7]], INF),
        ([True], [True, False], INF),
        (["one"], ["one", ""], INF),
        # But of floats what was cut is 0.
        ([], [0.25], 0.25),
        ([0.5, 1e-7], [0.5], 1e-7),
        ([[0.5], [0.125]], [[0.5, 0.25]], 0.25),
        ([], [[0.5], []], 0.5),
    ],
)
def test_differences_of_floats_are_measured_and_others_infinite(
    found, expected, gap
):
    assert difference(found, expected) == pytest.approx(gap)


def test_a_probability_of_one_may_be_rounded():
    """0 is no padding here: a last token whose logarithm is nearly 0."""
    found, expected = (
        one_row({"token_log_probs": [values]}, 0, pad_id=0)
        for values in ([-0.5, -1e-7, 0.0], [-0.5, 0.0])
    )
    assert difference(found, expected) < 1e-4


def test_attention_of_almost_nothing_may_be_rounded_to_nothing():
    found, expected = (
        one_row({"attention": [values]}, 0, pad_id=0)
        for values in ([[0.5, 0.5, 1e-40]], [[0.5, 0.5, 0.0]])
    )
    assert difference(found, expected) < 1e-4
