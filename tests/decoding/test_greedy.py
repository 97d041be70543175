"""Greedy search, by hand and against beam search of one."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import SearchState, greedy_search
from tests.support.exhaustive_search import plain_greedy
from tests.support.step_tables import (
    as_keywords,
    beam,
    greedy,
    padded,
    path_table,
    random_tables,
    table_step,
)


def eos_second_best_everywhere(length, vocab_size):
    table = random_tables(1, length, vocab_size, seed=3)[0]
    highest = table[..., 3:].max(axis=-1)
    table[..., 2] = highest - 1e-3
    return table


def trial_tables(count=200):
    """Random tables; row 0 has eos second best, row 1 starts with eos."""
    tables = random_tables(count, 7, 9, seed=1)
    tables[0] = eos_second_best_everywhere(7, 9)
    tables[1, 0, 1, 2] = 30.0
    return tables, [1 + row % 7 if row > 1 else 7 for row in range(count)]


def follows(result, row, expected):
    """Checks a row of a result against what the oracle found."""
    length = result.lengths[row]
    assert (result.token_ids[row, length:] == 0).all()
    if expected is None:
        assert length == 0
        assert np.isneginf(result.scores[row])
        assert not result.finished[row]
    else:
        assert tuple(result.token_ids[row, :length].tolist()) == expected.ids
        assert result.scores[row] == pytest.approx(expected.score, abs=1e-4)
        assert result.finished[row] == (2 in expected.ids)


@pytest.mark.parametrize("min_length", [0, 3])
def test_greedy_search_follows_the_likeliest_ids(min_length):
    tables, caps = trial_tables()
    result = greedy(tables, caps, min_length=min_length)
    for row, cap in enumerate(caps):
        expected = plain_greedy(tables[row], cap, min_length=min_length)
        follows(result, row, expected)
    assert len({tuple(row) for row in result.token_ids.tolist()}) > 90


def drawn_options(vocab_size, rows, generator):
    """Draws a value, off or on, of every option."""
    prefixes = [
        generator.integers(1, vocab_size, generator.integers(0, 4)).tolist()
        for _ in range(rows)
    ]
    values = {
        "min_length": generator.integers(2, 6),
        "forbidden_ids": (0, 1, int(generator.integers(2, vocab_size))),
        "no_repeat_ngram_size": generator.integers(1, 4),
        "repetition_penalty": generator.choice([0.5, 1.25, 3.0]),
        "target_prefix": prefixes,
    }
    return {
        name: value
        for name, value in values.items()
        if generator.random() < 0.6
    }


def test_all_options_together_follow_the_likeliest_of_what_is_allowed():
    generator = np.random.default_rng(0)
    dead_ends = 0
    for trial in range(100):
        vocab_size = int(generator.choice([4, 5, 7, 13, 31]))
        tables = random_tables(13, 7, vocab_size, seed=trial)
        tables[generator.random(tables.shape) < 0.1] = -np.inf
        caps = generator.integers(0, 8, 13).tolist()
        options = drawn_options(vocab_size, 13, generator)
        prefixes = options.pop("target_prefix", [[]] * 13)
        result = greedy(tables, caps, target_prefix=padded(prefixes), **options)
        for row, cap in enumerate(caps):
            expected = plain_greedy(
                tables[row], cap, target_prefix=prefixes[row], **options
            )
            follows(result, row, expected)
            dead_ends += expected is None
    assert 100 < dead_ends < 1000


def test_beam_of_one_equals_greedy():
    tables, caps = trial_tables()
    one = beam(tables, caps, beam_size=1, length_penalty=0.0)
    result = greedy(tables, caps)
    # The special rows are what they claim to be.
    assert 2 not in result.token_ids[0]
    assert result.lengths[:2].tolist() == [7, 1]
    assert 20 < result.finished.sum() < 180
    np.testing.assert_array_equal(one.token_ids[:, 0], result.token_ids)
    np.testing.assert_array_equal(one.lengths[:, 0], result.lengths)
    np.testing.assert_array_equal(one.finished[:, 0], result.finished)
    np.testing.assert_allclose(one.scores[:, 0], result.scores, atol=1e-4)


def test_beam_of_one_equals_greedy_where_ids_tie():
    tables = np.round(random_tables(50, 6, 9, seed=4, scale=1.0))
    one = beam(tables, [6] * 50, beam_size=1, length_penalty=0.0)
    result = greedy(tables, [6] * 50)
    np.testing.assert_array_equal(one.token_ids[:, 0], result.token_ids)


def test_a_dead_end_gives_no_hypothesis_as_in_beam_search():
    dead = path_table(4, 6, (0, 1, {3: 1.0}))
    alive = path_table(4, 6, (0, 1, {3: 1.0}), (1, 3, {2: 1.0}))
    result = greedy([dead, alive], [4, 4])
    assert result.token_ids.tolist() == [[0, 0], [3, 2]]
    assert result.lengths.tolist() == [0, 2]
    assert result.scores.tolist() == [float("-inf"), 0.0]
    assert result.finished.tolist() == [False, True]


def test_half_precision_logits_give_float32_scores():
    tables = random_tables(3, 4, 6, seed=5).astype("float16")
    half = greedy(tables, [4] * 3)
    full = greedy(tables.astype("float32"), [4] * 3)
    assert half.scores.dtype == np.float32
    for one, other in zip(half, full, strict=True):
        np.testing.assert_array_equal(one, other)


def test_rows_do_not_depend_on_their_batch():
    tables, caps = trial_tables(13)
    together = greedy(tables, caps)
    for row in range(13):
        alone = greedy(tables[row : row + 1], [caps[row]])
        length = alone.lengths[0]
        assert together.lengths[row] == length
        assert (
            together.token_ids[row, :length].tolist()
            == alone.token_ids[0].tolist()
        )
        assert together.scores[row] == pytest.approx(alone.scores[0], 1e-6)


def test_a_largest_length_of_zero_or_less_generates_nothing():
    result = greedy(random_tables(3, 4, 6, seed=6), [0, 4, -3])
    assert result.lengths.tolist()[::2] == [0, 0]
    assert result.lengths[1] > 0
    assert result.scores.tolist()[::2] == [0.0, 0.0]
    assert not result.finished[::2].any()
    assert (result.token_ids[::2] == 0).all()


def test_a_batch_may_have_no_rows():
    result = greedy(np.zeros((0, 3, 6, 6), "float32"), [])
    assert result.token_ids.shape == (0, 0)
    assert result.scores.shape == (0,)


OPTIONS = {
    "target_prefix": [[4, 3, 0], [0, 0, 0], [5, 0, 0], [3, 3, 3], [4, 0, 0]],
    "min_length": 5,
    "forbidden_ids": [0, 1, 4],
    "no_repeat_ngram_size": 1,
    "repetition_penalty": 3.0,
}


@pytest.mark.parametrize("name", [None, *OPTIONS, "all"])
def test_options_may_be_numbers_or_tensors_in_a_graph_or_not(name):
    """Eager and as numbers here, in a graph and as tensors in `greedy`."""
    # The same at all positions, so that outputs repeat themselves.
    tables = np.repeat(random_tables(5, 1, 6, seed=7), 6, axis=1)
    tables[..., 2] -= 2.0
    caps = [6, 2, 5, 0, 6]
    options = OPTIONS if name == "all" else {}
    if name in OPTIONS:
        options = {name: OPTIONS[name]}
    eager = greedy_search(
        table_step,
        SearchState(sentence=tf.constant(tables)),
        caps,
        **as_keywords(options),
    )
    graph = greedy(tables, caps, **options)
    for one, other in zip(eager, graph, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5)
    if name is not None:
        plain = greedy(tables, caps)
        assert graph.token_ids.tolist() != plain.token_ids.tolist()


def test_special_ids_may_be_others():
    table = np.zeros((4, 7, 7), "float32")
    table[0, 6, 5] = table[1, 5, 3] = table[2, 3, 4] = 9.0
    result = greedy_search(
        table_step,
        SearchState(sentence=tf.constant([table, table])),
        [4, 2],
        pad_id=1,
        bos_id=6,
        eos_id=4,
    )
    assert result.token_ids.numpy().tolist() == [[5, 3, 4], [5, 3, 1]]
    assert result.finished.numpy().tolist() == [True, False]
