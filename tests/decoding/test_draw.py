"""The draw of one id, against float64 and by chi-square tests."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.noise import seed_keys, step_keys
from keras_transformer.decoding.sampling import draw, eligible
from tests.support.sampling import (
    MARGIN,
    assert_distributed,
    by_id,
    distribution,
    drawn,
)

VOCAB_SIZE = 11


def draw_and_eligible(logits, seeds, *options):
    """Gives the ids drawn at position 0, and the ids that could have been."""
    keys = step_keys(seed_keys(seeds), tf.constant(0))
    values, ids = eligible(logits, *options)
    return (
        draw(logits, keys, *options),
        values,
        ids + tf.zeros_like(seeds[:, :1]),
    )


IN_GRAPH = tf.function(
    draw_and_eligible,
    input_signature=[
        tf.TensorSpec((None, None), tf.float32),
        tf.TensorSpec((None, 2), tf.int32),
        tf.TensorSpec((), tf.float32),
        tf.TensorSpec((), tf.int32),
        tf.TensorSpec((), tf.float32),
    ],
    autograph=False,
)


def in_graph(logits, seeds, temperature, top_k, top_p):
    return IN_GRAPH(
        logits,
        seeds,
        np.float32(temperature),
        np.int32(top_k),
        np.float32(top_p),
    )


class Draws:
    """Draws with one seed a row, those of the lines of a call."""

    def __init__(self, run):
        self._run = run

    def __call__(self, logits, temperature=1.0, top_k=0, top_p=1.0, seeds=None):
        """Gives the ids drawn, an array `(B,)`."""
        return self.both(logits, temperature, top_k, top_p, seeds)[0]

    def both(self, logits, temperature=1.0, top_k=0, top_p=1.0, seeds=None):
        """Gives the ids drawn, and what may be: shares, an array `(B, V)`."""
        logits = np.asarray(logits, "float32")
        seeds = lines(len(logits)) if seeds is None else seeds
        found, values, ids = (
            tensor.numpy()
            for tensor in self._run(
                tf.constant(logits),
                tf.constant(seeds),
                temperature,
                top_k,
                top_p,
            )
        )
        weights = np.zeros(logits.shape)
        np.put_along_axis(weights, ids, np.exp(values.astype("float64")), 1)
        total = weights.sum(axis=1, keepdims=True)
        return found, weights / np.where(total > 0, total, 1)


@pytest.fixture(params=[draw_and_eligible, in_graph], ids=["eager", "graph"])
def draws(request):
    return Draws(request.param)


def lines(count):
    seeds = np.stack([np.full(count, 5), np.arange(count)], axis=1)
    return seeds.astype("int32")


def log(probabilities):
    with np.errstate(divide="ignore"):
        return np.log(probabilities).astype("float32")


def logits_of_all_kinds():
    generator = np.random.default_rng(8)
    rows = generator.normal(scale=2.0, size=(9, VOCAB_SIZE))
    rows[1] = np.round(rows[1])  # Some tie.
    rows[2] = 0.0  # All tie.
    rows[3] *= 20
    rows[4, [0, 3, VOCAB_SIZE - 1]] = -np.inf
    rows[5] = -np.inf
    rows[5, 4] = -7.0
    rows[6] = -np.inf
    rows[6, 1:9] = 3.0
    rows[7] += 1e4
    rows[8, 5] = -1e30
    return rows.astype("float32")


@pytest.mark.parametrize("top_p", [1e-6, 0.31, 0.5, 0.89, 1.0])
@pytest.mark.parametrize("temperature", [0.0, 1e-5, 0.3, 1.0, 2.5, 100.0])
def test_ids_are_those_of_float64(draws, temperature, top_p):
    rows = np.repeat(logits_of_all_kinds(), 17, axis=0)
    for top_k in (0, 1, 2, VOCAB_SIZE - 1, VOCAB_SIZE, VOCAB_SIZE + 1, 10**6):
        options = (temperature, top_k, top_p)
        found, shares = draws.both(rows, *options)
        assert found.dtype == np.int32
        for line, row in enumerate(rows):
            kept = distribution(row, *options)
            expected, lead = drawn(*kept, (5, line), 0)
            assert lead > MARGIN, "float32 cannot tell"
            assert found[line] == expected
            np.testing.assert_allclose(
                shares[line], by_id(*kept, VOCAB_SIZE), rtol=1e-4, atol=1e-40
            )


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [
        (0, 0.125, 1),
        (0, 0.1250001, 2),
        (0, 0.375, 3),
        (0, 0.875, 7),
        (0, 0.8750001, 8),
        (0, 1.0, 8),
        (4, 0.25, 1),
        (4, 0.2500001, 2),
        (4, 0.75, 3),
        (2, 0.5, 1),
        (2, 0.5000001, 2),
        (8, 0.5, 4),
    ],
)
def test_top_p_keeps_no_more_than_reaches_it_exactly(draws, top_k, top_p, kept):
    row = [-np.inf] + [2.0] * 8
    found, shares = draws.both([row] * 200, 0.7, top_k, top_p)
    expected = [0.0] + [1 / kept] * kept + [0.0] * (8 - kept)
    np.testing.assert_allclose(shares, [expected] * 200)
    assert set(found.tolist()) == set(range(1, 1 + kept))


@pytest.mark.parametrize(
    ("probabilities", "top_p", "kept"),
    [
        ([0.7, 0.2, 0.1], 0.8, {0, 1}),
        ([0.5, 0.41, 0.09], 0.9, {0, 1}),
        ([0.3, 0.1, 0.1, 0.5], 0.79, {3, 0}),
        # Of two that tie the lower id.
        ([0.3, 0.1, 0.1, 0.5], 0.81, {3, 0, 1}),
        ([0.3, 0.1, 0.1, 0.5], 0.4999, {3}),
        ([0.3, 0.1, 0.1, 0.5], 1e-6, {3}),
        ([0.3, 0.1, 0.1, 0.5], 0.91, {3, 0, 1, 2}),
    ],
)
def test_the_id_that_crosses_top_p_is_kept(draws, probabilities, top_p, kept):
    logits = np.tile(log(probabilities), (10_000, 1))
    found, shares = draws.both(logits, top_p=top_p)
    assert set(found.tolist()) == set(np.flatnonzero(shares[0])) == kept
    total = sum(probabilities[token_id] for token_id in kept)
    for token_id in kept:
        share = probabilities[token_id] / total
        deviation = np.sqrt(share * (1 - share) / 10_000)
        assert abs((found == token_id).mean() - share) <= 3 * deviation


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "kept"),
    [
        # 0.4 and 0.3 are 0.57 and 0.43 of the two likeliest.
        (1.0, 0, 0.5, {1, 2}),
        (1.0, 2, 0.5, {1}),
        (1.0, 2, 0.6, {1, 2}),
        # Squared and renormalised: 0.53, 0.3, 0.13 and 0.03.
        (0.5, 0, 0.5, {1}),
        (0.5, 0, 0.8, {1, 2}),
        # Square roots: 0.33, 0.28, 0.23 and 0.16.
        (2.0, 0, 0.5, {1, 2}),
        (2.0, 0, 0.8, {1, 2, 0}),
        (2.0, 0, 0.85, {1, 2, 0, 3}),
    ],
)
def test_temperature_comes_before_top_k_and_top_k_before_top_p(
    draws, temperature, top_k, top_p, kept
):
    row = log([0.2, 0.4, 0.3, 0.1])
    _, shares = draws.both([row], temperature, top_k, top_p)
    assert set(np.flatnonzero(shares)) == kept


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [
        (1.0, 0, 1.0),
        (0.6, 0, 1.0),
        (3.0, 0, 1.0),
        (1.0, 3, 1.0),
        (1.0, 7, 1.0),
        (1.0, 0, 0.55),
        (1.0, 0, 0.99),
        (1.5, 5, 0.8),
    ],
)
def test_shares_are_the_probabilities(draws, temperature, top_k, top_p):
    probabilities = np.array([0.11, 0.3, 0.05, 0.0, 0.23, 0.02, 0.16, 0.13])
    logits = np.tile(log(probabilities), (30_011, 1))
    found = draws(logits, temperature, top_k, top_p)
    # In words of powers: a temperature is a root.
    expected = np.where(
        probabilities > 0, probabilities ** (1 / temperature), 0
    )
    order = np.argsort(-expected, kind="stable")
    if top_k:
        expected[order[top_k:]] = 0
    expected /= expected.sum()
    reached = np.cumsum(expected[order]) >= top_p
    if reached.any():
        expected[order[np.argmax(reached) + 1 :]] = 0
    expected /= expected.sum()
    counts = np.bincount(found, minlength=len(probabilities))
    assert_distributed(counts, expected)
    # The reference of the other tests is right, too.
    kept = distribution(logits[0], temperature, top_k, top_p)
    np.testing.assert_allclose(
        by_id(*kept, len(probabilities)), expected, atol=1e-6
    )


@pytest.mark.parametrize("top_k", [0, -1, -(2**31), 32, 33, 10**6, 2**31 - 1])
def test_top_k_of_nothing_or_the_whole_vocabulary_is_off(draws, top_k):
    generator = np.random.default_rng(6)
    logits = generator.normal(scale=2, size=(50, 32))
    for options in ({}, {"temperature": 0.4}, {"top_p": 0.7}):
        found = draws(logits, top_k=top_k, **options)
        expected = [
            drawn(*distribution(row, **options), (5, line), 0)[0]
            for line, row in enumerate(logits.astype("float32"))
        ]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 1},
        {"top_k": 1, "temperature": 100.0},
        {"top_k": 1, "top_p": 0.1},
        {"top_p": 1e-6},
        {"temperature": 0.0},
        {"temperature": 1e-5},
        {"temperature": 9.9e-5, "top_k": 5, "top_p": 0.9},
        {"temperature": 0.0, "top_k": 10**6},
        {"temperature": 0.0, "top_p": 1e-6},
    ],
)
def test_one_candidate_is_the_likeliest_and_of_equal_ones_the_lower(
    draws, options
):
    generator = np.random.default_rng(9)
    logits = np.round(generator.normal(scale=1.5, size=(700, 13)))
    logits[::3, :4] = -np.inf
    ties = (logits == logits.max(axis=1, keepdims=True)).sum(axis=1)
    assert (ties > 1).sum() > 100
    found = draws(logits, **options)
    np.testing.assert_array_equal(found, logits.argmax(axis=1))


def test_the_least_temperature_that_draws_is_no_division_by_zero(draws):
    # Of 1e-4, a temperature that is not 0, this is one unit.
    logits = np.tile([3.0, 3.0 - 1e-4 * np.log(3), -1e4, 1.0], (4000, 1))
    found = draws(logits, temperature=1.01e-4)
    shares = np.bincount(found, minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.75, 0.25, 0, 0], atol=0.02)


@pytest.mark.parametrize("where", [[0], [6], [0, 1, 2], [4, 5, 6], [1, 3, 5]])
@pytest.mark.parametrize("top_k", [0, 1, 3, 6, 7])
def test_the_impossible_is_never_drawn(draws, where, top_k):
    logits = np.random.default_rng(2).normal(size=(501, 7))
    logits[:, where] = -np.inf
    for temperature in (0.0, 0.3, 1.0, 100.0):
        for top_p in (1e-6, 0.5, 0.9999999, 1.0):
            found = draws(logits, temperature, top_k, top_p)
            assert not np.isin(found, where).any()


def test_a_row_without_anything_possible_disturbs_no_other(draws):
    logits = np.random.default_rng(4).normal(size=(3, 5))
    logits[1] = -np.inf
    for options in ({}, {"top_k": 2}, {"top_p": 0.5}, {"temperature": 0.0}):
        alone = draws(logits[::2], seeds=lines(3)[::2], **options)
        found = draws(logits, **options)
        assert found[::2].tolist() == alone.tolist()
        assert 0 <= found[1] < 5


@pytest.mark.parametrize(
    "row",
    [
        [3e38, -3e38, 3e38, 0.0],
        [-3e38, -np.inf, -3e38, -np.inf],
        [1e4, 1e4 - 200, 1e4, -1e4],
        [-1e-38, 1.0 - 200, -1e-45, -200.0],
    ],
)
def test_extreme_logits_are_drawn_as_others(draws, row):
    for options in ({}, {"top_k": 3}, {"top_p": 0.9}, {"top_k": 10**6}):
        counts = np.bincount(draws([row] * 4000, **options), minlength=4)
        assert counts[1] == counts[3] == 0
        assert 1900 < counts[0] < 2100


def test_the_rare_in_a_large_vocabulary_is_as_rare_as_it_should_be(draws):
    """Smoothed: half of the whole is shared by thousands of ids."""
    probabilities = np.full(10_007, 0.5 / 9_998)
    probabilities[[5, 17, 9_001]] = 0.3, 0.15, 0.05
    # A thousandth of all for one in three of them, evenly spread.
    probabilities[30:9_030:3] *= 0.002
    probabilities /= probabilities.sum()
    counts = np.zeros(len(probabilities))
    for call in range(30):
        seeds = lines(500)
        seeds[:, 0] = call
        found = draws(np.tile(log(probabilities), (500, 1)), seeds=seeds)
        np.add.at(counts, found, 1)
    rare = np.zeros(len(probabilities), bool)
    rare[30:9_030:3] = True
    rest = ~rare
    rest[[5, 17, 9_001]] = False
    groups = [
        *([token_id] for token_id in (5, 17, 9_001)),
        rare,
        *np.array_split(np.flatnonzero(rest), 96),
    ]
    assert_distributed(
        [counts[group].sum() for group in groups],
        [probabilities[group].sum() for group in groups],
    )


def test_an_id_has_the_same_noise_whatever_else_is_eligible(draws):
    """What is drawn of all is drawn of some, if it is among them."""
    logits = np.random.default_rng(3).normal(size=(300, VOCAB_SIZE))
    found = draws(logits)
    for options in ({"top_k": 4}, {"top_p": 0.6}):
        fewer, shares = draws.both(logits, **options)
        among = shares[np.arange(300), found] > 0
        assert 100 < sum(among) < 290
        np.testing.assert_array_equal(fewer[among], found[among])


def test_a_row_does_not_depend_on_the_others(draws):
    logits = logits_of_all_kinds()
    seeds = lines(len(logits))
    for options in ({}, {"top_k": 3, "temperature": 0.7}, {"top_p": 0.6}):
        together = draws(logits, **options)
        backwards = draws(logits[::-1], seeds=seeds[::-1], **options)
        assert backwards[::-1].tolist() == together.tolist()
        for row in range(len(logits)):
            one = slice(row, row + 1)
            alone = draws(logits[one], seeds=seeds[one], **options)
            assert alone[0] == together[row]


def test_there_may_be_no_rows(draws):
    for options in ({}, {"top_k": 2}, {"top_p": 0.5}):
        assert draws(np.zeros((0, 5)), **options).shape == (0,)


def test_options_may_be_ints_and_numbers_of_numpy():
    draws = Draws(draw_and_eligible)
    logits = np.random.default_rng(4).normal(size=(50, 7))
    expected = draws(logits, 2.0, 5, 1.0)
    for options in (
        (2, 5, 1),
        (np.float64(2), np.int64(5), np.float64(1)),
        (tf.constant(2.0), tf.constant(5), tf.constant(1.0)),
    ):
        np.testing.assert_array_equal(draws(logits, *options), expected)
