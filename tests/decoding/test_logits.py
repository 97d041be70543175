"""Candidates for the next id."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.logits import (
    allowed_candidates,
    likeliest,
    log_normalizer,
    log_prob_of,
    mask_forbidden,
    which_occur,
)
from tests.support.exhaustive_search import log_softmax

LOGITS = np.array(
    [[0.0, 3.0, 1.0, 2.0, -1.0], [5.0, 0.0, 5.0, 5.0, 1.0]], "float32"
)
NOTHING = np.array([[-1]], "int32")


def test_candidates_come_likeliest_first_and_ties_by_lower_id():
    log_probs, ids = allowed_candidates(LOGITS, 4, NOTHING)
    assert ids.numpy().tolist() == [[1, 3, 2, 0], [0, 2, 3, 4]]
    for row in range(2):
        expected = log_softmax(LOGITS[row])[ids[row]]
        np.testing.assert_allclose(log_probs[row], expected, atol=1e-6)


@pytest.mark.parametrize(
    "forbidden",
    [[[1, 0, -1]], [[1, 0, -1], [0, 2, 3]], [[-1, 9, 1], [-7, 3, 3]]],
)
def test_forbidden_candidates_have_no_probability_and_the_others_their_own(
    forbidden,
):
    log_probs, ids = allowed_candidates(LOGITS, 4, np.array(forbidden, "int32"))
    assert ids.shape == (2, 4)
    for row in range(2):
        expected = log_softmax(LOGITS[row])[ids[row]]
        expected[np.isin(ids[row], forbidden[row % len(forbidden)])] = -np.inf
        np.testing.assert_allclose(log_probs[row], expected, atol=1e-6)
        assert np.isfinite(log_probs[row]).any()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_candidates_as_wanted_are_allowed(count):
    """Those forbidden are the likeliest of each row."""
    forbidden = np.array([[1, 3], [0, 2]], "int32")
    log_probs, ids = allowed_candidates(LOGITS, count + 2, forbidden)
    left = [[2, 0, 4], [3, 4, 1]]
    for row in range(2):
        allowed = ids[row].numpy()[np.isfinite(log_probs[row])]
        assert allowed.tolist()[:count] == left[row][:count]


@pytest.mark.parametrize("count", [5, 7, 50])
def test_there_are_no_more_candidates_than_ids(count):
    log_probs, ids = allowed_candidates(LOGITS, count, np.array([[3]], "int32"))
    assert ids.shape == log_probs.shape == (2, 5)
    for row in ids.numpy():
        assert sorted(row) == [0, 1, 2, 3, 4]


def test_an_impossible_row_gives_no_nan():
    logits = np.full((2, 4), -np.inf, "float32")
    logits[1, 2] = 0.0
    log_probs, ids = allowed_candidates(logits, 5, NOTHING)
    assert np.isneginf(log_probs[0]).all()
    assert log_probs[1].numpy().tolist() == [0.0] + 3 * [-np.inf]
    assert ids[1, 0] == 2


def test_extreme_logits_do_not_overflow():
    logits = np.array([[1e4, 1e4], [-1e4, -1e4]], "float32")
    log_probs, _ = allowed_candidates(logits, 3, NOTHING)
    np.testing.assert_allclose(log_probs, np.full((2, 2), np.log(0.5)), 1e-3)


@pytest.mark.parametrize("vocab_size", [7, 2048, 2053, 2310, 10007, 10010])
@pytest.mark.parametrize("count", [1, 2, 11, 97, 5000, 20000])
def test_the_likeliest_ids_are_those_of_a_sort_ties_and_all(vocab_size, count):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5, vocab_size)).astype("float32")
    logits[1] = np.round(logits[1])  # A few values, each many times.
    logits[2] = rng.permutation(np.arange(vocab_size) // 3)
    logits[3] = -np.inf
    logits[4, rng.permutation(vocab_size)[: vocab_size // 2]] = -np.inf
    values, ids = likeliest(tf.constant(logits), count)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(ids, order)
    np.testing.assert_array_equal(
        values, np.take_along_axis(logits, order, axis=1)
    )


def test_the_log_probability_of_given_ids_is_looked_up():
    logits = np.stack([LOGITS, LOGITS[::-1], LOGITS - 7.0])
    ids = np.array([[4, 0], [2, 1], [3, 3]], "int32")
    looked_up = log_prob_of(tf.constant(logits), tf.constant(ids))
    expected = [
        [log_softmax(logits[i, j])[ids[i, j]] for j in range(2)]
        for i in range(3)
    ]
    np.testing.assert_allclose(looked_up, expected, atol=1e-6)
    np.testing.assert_allclose(
        log_prob_of(tf.constant(LOGITS), tf.constant([4, 0])), expected[0], 1e-6
    )


def test_the_log_probability_of_the_impossible_is_no_nan():
    logits = tf.constant([[-np.inf, 0.0], [-np.inf, -np.inf], [0.0, -np.inf]])
    looked_up = log_prob_of(logits, tf.constant([0, 1, 0])).numpy()
    assert looked_up.tolist() == [-np.inf, -np.inf, 0.0]


def test_ids_that_occur_are_marked_however_often():
    found = which_occur(tf.constant([[4, 0, 4], [1, 1, 1]]), 5)
    assert found.numpy().tolist() == [
        [True, False, False, False, True],
        [False, True, False, False, False],
    ]


@pytest.mark.parametrize(
    ("forbidden", "masked"),
    [
        ([[1, 3]], [{0, 1, 3}, {0, 1, 3}]),
        ([[1, 3], [4, -1]], [{0, 1, 3}, {0, 4}]),
        ([[5, -6], [99, 2]], [{0}, {0, 2}]),
    ],
)
def test_forbidden_ids_and_pad_become_impossible(forbidden, masked):
    result = mask_forbidden(tf.constant(LOGITS), tf.constant(forbidden), 0)
    for row, ids in enumerate(masked):
        expected = LOGITS[row].copy()
        expected[list(ids)] = -np.inf
        assert result[row].numpy().tolist() == expected.tolist()


def test_the_normalizer_is_that_of_tensorflow_for_any_logits():
    rows = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")
    rows[1] += 1e4
    rows[2] -= 1e4
    rows[3, :3] = -np.inf
    rows[4] = -np.inf
    rows[5, 2] = np.inf
    expected = tf.reduce_logsumexp(rows, axis=-1, keepdims=True)
    np.testing.assert_allclose(log_normalizer(rows), expected, rtol=1e-6)
