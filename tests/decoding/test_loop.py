"""Sentences that are done leave the running batch, and nothing else changes."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import (
    SearchState,
    beam_search,
    greedy_search,
    loop,
)
from tests.support.step_tables import (
    as_keywords,
    padded,
    random_attention,
    random_tables,
    table_step,
)

ENDLESS = np.zeros((1, 5, 5), "float32")
ENDLESS[..., 2] = float("-inf")
# How many sentences run at each step, if sentence i of 13 takes i steps.
RUNNING = {
    1: 13 * [13],
    3: 5 * [13] + 3 * [8] + 2 * [5] + [3, 2, 1],
    8: 2 * [13] + 2 * [11] + 2 * [9] + [7, 6, 5, 4, 3, 2, 1],
    1000: [13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1],
}


class Watched:
    """`table_step`, with the sizes of all batches that it was given."""

    def __init__(self):
        self.sentences, self.hypotheses = [], []

    def __call__(self, token_ids, position, state):
        self.sentences.append(int(tf.shape(state.sentence)[0]))
        self.hypotheses.append(int(tf.size(token_ids)))
        return table_step(token_ids, position, state)


def endless(count):
    return SearchState(sentence=tf.constant(np.stack([ENDLESS] * count)))


@pytest.mark.parametrize("leave_together", RUNNING)
def test_done_sentences_leave_once_they_are_enough(monkeypatch, leave_together):
    monkeypatch.setattr(loop, "LEAVE_TOGETHER", leave_together)
    caps = [7, 1, 12, 4, 9, 2, 13, 6, 3, 11, 8, 5, 10]
    step = Watched()
    result = greedy_search(step, endless(13), caps)
    assert step.sentences == RUNNING[leave_together]
    assert step.hypotheses == step.sentences
    assert result.lengths.numpy().tolist() == caps
    step = Watched()
    result = beam_search(step, endless(13), caps, beam_size=3)
    assert step.sentences == RUNNING[leave_together]
    assert step.hypotheses == [3 * count for count in step.sentences]
    assert result.lengths.numpy().ravel().tolist() == caps


def test_done_sentences_leave_within_a_graph():
    seen = []

    def step(token_ids, position, state):
        tf.py_function(
            lambda *sizes: seen.append([int(size) for size in sizes]),
            [tf.shape(state.sentence)[0], tf.size(token_ids)],
            [],
        )
        return table_step(token_ids, position, state)

    caps = tf.constant([2, 1, 5, 3])
    tf.function(greedy_search)(step, endless(4), caps)
    assert seen == [[4, 4], [3, 3], [2, 2], [1, 1], [1, 1]]
    seen.clear()
    tf.function(lambda: beam_search(step, endless(4), caps, beam_size=3))()
    assert seen == [[4, 12], [3, 9], [2, 6], [1, 3], [1, 3]]


def test_those_who_end_leave_as_do_those_who_are_cut():
    """Two rows end at once, one has a dead end, one goes on."""
    tables = np.stack([ENDLESS] * 4)
    tables[:2, 0, :, 2] = 50.0
    tables[2] = float("-inf")
    for search in (greedy_search, beam_search):
        step = Watched()
        result = search(
            step, SearchState(sentence=tf.constant(tables)), [5] * 4
        )
        assert step.sentences == [4, 1, 1, 1, 1]
        assert result.lengths.numpy().ravel().tolist() == [1, 1, 0, 5]
        finished = [True, True, False, False]
        assert result.finished.numpy().ravel().tolist() == finished


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_rows_that_may_generate_nothing_leave_before_the_first_step(search):
    step = Watched()
    caps = [0, 3, -1, 2, 0]
    result = search(step, endless(5), caps)
    assert step.sentences == [2, 2, 1]
    assert result.lengths.numpy().ravel().tolist() == [0, 3, 0, 2, 0]
    assert result.scores.numpy().ravel()[[0, 2, 4]].tolist() == [0.0] * 3


@pytest.mark.parametrize("search", [greedy_search, beam_search])
@pytest.mark.parametrize("caps", [[], [0], [0, -3, 0]])
def test_without_rows_to_run_there_is_no_step(search, caps):
    def step(token_ids, position, state):
        raise RuntimeError("there is nothing to do")

    state = SearchState(
        sentence=tf.zeros((len(caps), 1, 5, 5)),
        hypothesis=tf.zeros((len(caps), 0, 3)),
    )
    result = search(step, state, caps)
    assert result.lengths.shape[0] == len(caps)
    assert result.token_ids.shape[-1] == 0
    assert not result.finished.numpy().any()


def many_options():
    generator = np.random.default_rng(0)
    prefixes = [
        generator.integers(3, 7, generator.integers(0, 4)).tolist()
        for _ in range(23)
    ]
    return {
        "target_prefix": padded(prefixes),
        "min_length": 2,
        "no_repeat_ngram_size": 2,
        "repetition_penalty": 1.25,
    }


@pytest.mark.parametrize("options", [{}, many_options()])
def test_results_do_not_depend_on_when_rows_leave(monkeypatch, options):
    tables = random_tables(23, 9, 7, seed=3, scale=1.5)
    attention = random_attention(23, 9, 7, seed=3)
    state = SearchState(sentence=(tf.constant(tables), tf.constant(attention)))
    caps = [row % 10 for row in range(23)]
    beam_options = {"beam_size": 3, "num_hypotheses": 3, **options}
    if options:
        beam_options["coverage_penalty"] = 0.5
    results = {}
    for leave_together in (1, 3, 8, 1000):
        monkeypatch.setattr(loop, "LEAVE_TOGETHER", leave_together)
        results[leave_together] = (
            *greedy_search(table_step, state, caps, **as_keywords(options)),
            *beam_search(table_step, state, caps, **as_keywords(beam_options)),
        )
    for result in results.values():
        for one, other in zip(result, results[1], strict=True):
            if one.dtype == tf.float32:
                np.testing.assert_allclose(one, other, rtol=1e-6)
            else:
                np.testing.assert_array_equal(one, other)
    lengths = results[1][1].numpy()
    assert len(set(lengths.tolist())) > 5
    assert 3 < results[1][3].numpy().sum() < 20
