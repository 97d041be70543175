"""Candidates for the next id."""

import numpy as np
import pytest

from keras_transformer.decoding.logits import (
    allowed_candidates,
    forbid_early_eos,
)
from tests.support.exhaustive_search import log_softmax

LOGITS = np.array(
    [[0.0, 3.0, 1.0, 2.0, -1.0], [5.0, 0.0, 5.0, 5.0, 1.0]], "float32"
)


def test_candidates_come_likeliest_first_and_ties_by_lower_id():
    log_probs, ids = allowed_candidates(LOGITS, 3, np.array([-1], "int32"))
    assert ids.numpy().tolist() == [[1, 3, 2, 0], [0, 2, 3, 4]]
    for row in range(2):
        expected = log_softmax(LOGITS[row])[ids[row]]
        np.testing.assert_allclose(log_probs[row], expected, atol=1e-6)


def test_forbidden_candidates_have_no_probability_and_the_others_their_own():
    forbidden = np.array([1, 0, -1], "int32")
    log_probs, ids = allowed_candidates(LOGITS, 1, forbidden)
    assert ids.shape == (2, 4)
    for row in range(2):
        expected = log_softmax(LOGITS[row])[ids[row]]
        expected[np.isin(ids[row], forbidden)] = -np.inf
        np.testing.assert_allclose(log_probs[row], expected, atol=1e-6)
        assert np.isfinite(log_probs[row]).any()


@pytest.mark.parametrize("count", [5, 7, 50])
def test_there_are_no_more_candidates_than_ids(count):
    log_probs, ids = allowed_candidates(LOGITS, count, np.array([3], "int32"))
    assert ids.shape == log_probs.shape == (2, 5)
    for row in ids.numpy():
        assert sorted(row) == [0, 1, 2, 3, 4]


def test_an_impossible_row_gives_no_nan():
    logits = np.full((2, 4), -np.inf, "float32")
    logits[1, 2] = 0.0
    log_probs, ids = allowed_candidates(logits, 4, np.array([-1], "int32"))
    assert np.isneginf(log_probs[0]).all()
    assert log_probs[1].numpy().tolist() == [0.0] + 3 * [-np.inf]
    assert ids[1, 0] == 2


def test_extreme_logits_do_not_overflow():
    logits = np.array([[1e4, 1e4], [-1e4, -1e4]], "float32")
    log_probs, _ = allowed_candidates(logits, 2, np.array([-1], "int32"))
    np.testing.assert_allclose(log_probs, np.full((2, 2), np.log(0.5)), 1e-3)


@pytest.mark.parametrize(
    ("position", "min_length", "last"),
    [(0, 0, -1), (0, 1, -1), (0, 2, 9), (1, 2, -1), (3, 9, 9), (0, -4, -1)],
)
def test_eos_is_forbidden_while_its_length_would_be_too_small(
    position, min_length, last
):
    ids = forbid_early_eos([4, 7], 9, position, min_length)
    assert ids.numpy().tolist() == [4, 7, last]


def test_nothing_need_be_forbidden():
    assert forbid_early_eos([], 2, 0, 0).numpy().tolist() == [-1]
