"""The draw of one id, against float64 and by chi-square tests."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.noise import seed_keys, uniform
from keras_transformer.decoding.sampling import draw
from tests.support.sampling import (
    MARGIN,
    assert_distributed,
    by_id,
    distribution,
    drawn,
)

VOCAB_SIZE = 11
BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))

IN_GRAPH = tf.function(
    draw,
    input_signature=[
        tf.TensorSpec((None, None), tf.float32),
        tf.TensorSpec((None,), tf.float32),
        tf.TensorSpec((), tf.float32),
        tf.TensorSpec((), tf.int32),
        tf.TensorSpec((), tf.float32),
    ],
    autograph=False,
)


def graph_draw(logits, numbers, temperature=1.0, top_k=0, top_p=1.0):
    return IN_GRAPH(
        np.asarray(logits, "float32"),
        np.asarray(numbers, "float32"),
        np.float32(temperature),
        np.int32(top_k),
        np.float32(top_p),
    ).numpy()


def eager_draw(logits, numbers, temperature=1.0, top_k=0, top_p=1.0):
    return draw(
        tf.constant(logits, tf.float32),
        tf.constant(numbers, tf.float32),
        temperature,
        top_k,
        top_p,
    ).numpy()


@pytest.fixture(params=[eager_draw, graph_draw], ids=["eager", "graph"])
def draw_ids(request):
    return request.param


def log(probabilities):
    with np.errstate(divide="ignore"):
        return np.log(probabilities).astype("float32")


def even_numbers(count):
    """Numbers from 0 to just below 1, both ends included."""
    return np.minimum(np.linspace(0, 1, count), BELOW_ONE)


def random_numbers(count):
    seeds = np.stack([np.full(count, 5), np.arange(count)], axis=1)
    return uniform(seed_keys(tf.constant(seeds, tf.int32)), 0).numpy()


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


def telling_numbers(ids, probabilities, generator):
    """Numbers at both ends, beside each boundary, and anywhere."""
    boundaries = np.cumsum(probabilities)
    numbers = np.concatenate(
        [
            [0.0, BELOW_ONE],
            boundaries - 2 * MARGIN,
            boundaries + 2 * MARGIN,
            generator.random(5),
        ]
    ).astype("float32")
    numbers = numbers[(numbers >= 0) & (numbers < 1)]
    pairs = [drawn(ids, probabilities, number) for number in numbers]
    found = np.array([token_id for token_id, _ in pairs])
    clear = np.array([distance > MARGIN for _, distance in pairs])
    return numbers[clear], found[clear]


@pytest.mark.parametrize("top_p", [1e-6, 0.31, 0.5, 0.89, 1.0])
@pytest.mark.parametrize("temperature", [0.0, 1e-5, 0.3, 1.0, 2.5, 100.0])
def test_ids_are_those_of_float64(draw_ids, temperature, top_p):
    generator = np.random.default_rng(3)
    count = 0
    for top_k in (0, 1, 2, VOCAB_SIZE - 1, VOCAB_SIZE, VOCAB_SIZE + 1, 10**6):
        logits, numbers, expected = [], [], []
        for row in logits_of_all_kinds():
            kept = distribution(row, temperature, top_k, top_p)
            chosen, ids = telling_numbers(*kept, generator)
            logits.append(np.tile(row, (len(ids), 1)))
            numbers.append(chosen)
            expected.append(ids)
        found = draw_ids(
            np.concatenate(logits),
            np.concatenate(numbers),
            temperature,
            top_k,
            top_p,
        )
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, np.concatenate(expected))
        count += len(found)
    assert count > 400


def test_boundaries_lie_where_probabilities_add_up(draw_ids):
    """By hand, since float32 holds each of these numbers."""
    logits = [[0.0, -np.inf, 0.0, 0.0, 0.0]] * 8
    numbers = [0, 0.24999998, 0.25, 0.4999999, 0.5, 0.7499999, 0.75, BELOW_ONE]
    expected = [0, 0, 2, 2, 3, 3, 4, 4]
    assert draw_ids(logits, numbers).tolist() == expected
    assert draw_ids(logits, numbers, top_k=4).tolist() == expected
    assert draw_ids(logits, numbers, top_k=2).tolist() == [0] * 4 + [2] * 4
    assert draw_ids(logits, numbers, top_p=0.5).tolist() == [0] * 4 + [2] * 4


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
def test_top_p_keeps_no_more_than_reaches_it_exactly(
    draw_ids, top_k, top_p, kept
):
    logits = np.full((64, 9), -np.inf)
    logits[:, 1:] = 2.0
    found = draw_ids(logits, even_numbers(64), 0.7, top_k, top_p)
    assert sorted(set(found.tolist())) == list(range(1, 1 + kept))


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
def test_the_id_that_crosses_top_p_is_kept(
    draw_ids, probabilities, top_p, kept
):
    logits = np.tile(log(probabilities), (10_000, 1))
    found = draw_ids(logits, random_numbers(10_000), top_p=top_p)
    assert set(found.tolist()) == kept
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
    draw_ids, temperature, top_k, top_p, kept
):
    logits = np.tile(log([0.2, 0.4, 0.3, 0.1]), (1000, 1))
    found = draw_ids(logits, even_numbers(1000), temperature, top_k, top_p)
    assert set(found.tolist()) == kept


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
def test_shares_are_the_probabilities(draw_ids, temperature, top_k, top_p):
    probabilities = np.array([0.11, 0.3, 0.05, 0.0, 0.23, 0.02, 0.16, 0.13])
    logits = np.tile(log(probabilities), (30_011, 1))
    numbers = random_numbers(len(logits))
    found = draw_ids(logits, numbers, temperature, top_k, top_p)
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
def test_top_k_of_nothing_or_the_whole_vocabulary_is_off(draw_ids, top_k):
    generator = np.random.default_rng(6)
    logits = generator.normal(scale=2, size=(500, 32))
    numbers = random_numbers(500)
    for options in ({}, {"temperature": 0.4}, {"top_p": 0.7}):
        found = draw_ids(logits, numbers, top_k=top_k, **options)
        kept = [distribution(row, **options) for row in logits]
        expected = [
            drawn(*pair, number)[0]
            for pair, number in zip(kept, numbers, strict=True)
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
    draw_ids, options
):
    generator = np.random.default_rng(9)
    logits = np.round(generator.normal(scale=1.5, size=(700, 13)))
    logits[::3, :4] = -np.inf
    ties = (logits == logits.max(axis=1, keepdims=True)).sum(axis=1)
    assert (ties > 1).sum() > 100
    found = draw_ids(logits, even_numbers(700), **options)
    np.testing.assert_array_equal(found, logits.argmax(axis=1))


def test_the_least_temperature_that_draws_is_no_division_by_zero(draw_ids):
    # Of 1e-4, a temperature that is not 0, this is one unit.
    logits = np.tile([3.0, 3.0 - 1e-4 * np.log(3), -1e4, 1.0], (4000, 1))
    found = draw_ids(logits, even_numbers(4000), temperature=1.01e-4)
    shares = np.bincount(found, minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.75, 0.25, 0, 0], atol=0.01)


@pytest.mark.parametrize("where", [[0], [6], [0, 1, 2], [4, 5, 6], [1, 3, 5]])
@pytest.mark.parametrize("top_k", [0, 1, 3, 6, 7])
def test_the_impossible_is_never_drawn(draw_ids, where, top_k):
    logits = np.random.default_rng(2).normal(size=(501, 7))
    logits[:, where] = -np.inf
    numbers = even_numbers(501)
    for temperature in (0.0, 0.3, 1.0, 100.0):
        for top_p in (1e-6, 0.5, 0.9999999, 1.0):
            found = draw_ids(logits, numbers, temperature, top_k, top_p)
            assert not np.isin(found, where).any()


def test_a_row_without_anything_possible_disturbs_no_other(draw_ids):
    logits = np.random.default_rng(4).normal(size=(3, 5))
    numbers = [0.3, 0.6, 0.9]
    logits[1] = -np.inf
    for options in ({}, {"top_k": 2}, {"top_p": 0.5}, {"temperature": 0.0}):
        alone = draw_ids(logits[::2], numbers[::2], **options)
        found = draw_ids(logits, numbers, **options)
        assert found[::2].tolist() == alone.tolist()
        assert 0 <= found[1] < 5


def test_extreme_logits_are_drawn_as_others(draw_ids):
    rows = [
        [3e38, -3e38, 3e38, 0.0],
        [-3e38, -np.inf, -3e38, -np.inf],
        [1e4, 1e4 - 200, 1e4, -1e4],
        [-1e-38, 1.0 - 200, -1e-45, -200.0],
    ]
    numbers = [0.0, 0.25, 0.49, 0.51, 0.75, BELOW_ONE]
    for row in rows:
        for options in ({}, {"top_k": 3}, {"top_p": 0.9}, {"top_k": 10**6}):
            found = draw_ids([row] * 6, numbers, **options)
            assert found.tolist() == [0, 0, 0, 2, 2, 2]


def test_a_large_vocabulary_is_drawn_evenly(draw_ids):
    """Sums of so many float32 stay close to those of float64."""
    generator = np.random.default_rng(1)
    row = generator.normal(scale=3, size=50_021).astype("float32")
    numbers = even_numbers(101)
    for options in ({}, {"top_k": 20_011}):
        ids, probabilities = distribution(row, **options)
        places = np.full(len(row), -1)
        places[ids] = np.arange(len(ids))
        found = draw_ids(np.tile(row, (101, 1)), numbers, **options)
        place = places[found]
        assert place.min() >= 0
        after = np.cumsum(probabilities)[place]
        before = after - probabilities[place]
        assert (numbers < after + 1e-4).all()
        assert (numbers >= before - 1e-4).all()


def test_a_row_does_not_depend_on_the_others(draw_ids):
    logits = logits_of_all_kinds()
    numbers = random_numbers(len(logits))
    for options in ({}, {"top_k": 3, "temperature": 0.7}, {"top_p": 0.6}):
        together = draw_ids(logits, numbers, **options)
        backwards = draw_ids(logits[::-1], numbers[::-1], **options)
        assert backwards[::-1].tolist() == together.tolist()
        for row in range(len(logits)):
            one = slice(row, row + 1)
            alone = draw_ids(logits[one], numbers[one], **options)
            assert alone[0] == together[row]


def test_there_may_be_no_rows(draw_ids):
    for options in ({}, {"top_k": 2}, {"top_p": 0.5}):
        assert draw_ids(np.zeros((0, 5)), [], **options).shape == (0,)


def test_options_may_be_ints_and_numbers_of_numpy():
    logits = np.random.default_rng(4).normal(size=(50, 7))
    numbers = even_numbers(50)
    expected = eager_draw(logits, numbers, 2.0, 5, 1.0)
    for options in (
        (2, 5, 1),
        (np.float64(2), np.int64(5), np.float64(1)),
        (tf.constant(2.0), tf.constant(5), tf.constant(1.0)),
    ):
        found = eager_draw(logits, numbers, *options)
        np.testing.assert_array_equal(found, expected)
