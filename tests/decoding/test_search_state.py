"""The searches with a state of the user's own."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import (
    Constraints,
    SearchState,
    beam_search,
    greedy_search,
    loop,
)
from keras_transformer.decoding.loop import loop_shapes
from keras_transformer.decoding.search_state import select_rows
from tests.support.exhaustive_search import log_softmax, penalty

VOCAB_SIZE = 7
WEIGHTS = np.random.default_rng(2).normal(scale=1.5, size=(13, 11, VOCAB_SIZE))
# Caps of many lengths, so that rows leave one after the other.
CAPS = [3, 8, 1, 5, 8, 2, 7, 8, 4, 6, 8, 0, 5]


def history_logits(history, sentence):
    """Logits that depend on all ids so far and on the sentence.

    history: ints `(..., t)`, bos first; sentence: int, the row.
    """
    history = np.asarray(history)
    places = np.arange(1, history.shape[-1] + 1)
    code = (history * places).sum(axis=-1) % 11
    return WEIGHTS[sentence, code]


class Recorder:
    """A step that keeps the ids it has seen, and notes what it was given."""

    def __init__(self):
        self.calls = []

    def start(self, batch):
        return SearchState(
            sentence={"row": tf.range(batch), "wide": tf.ones((batch, 3, 2))},
            hypothesis=[
                tf.zeros((batch, 0), tf.int32),
                {"slots": tf.zeros((batch, 0), tf.int32)},
            ],
        )

    def __call__(self, token_ids, position, state):
        rows = state.sentence["row"]
        history, others = state.hypothesis
        beam_size = tf.size(token_ids) // tf.size(rows)
        slot = tf.range(tf.size(token_ids)) % beam_size
        history = tf.concat([history, token_ids[:, None]], axis=1)
        slots = tf.concat([others["slots"], slot[:, None]], axis=1)
        places = tf.range(1, tf.shape(history)[1] + 1)
        code = tf.reduce_sum(history * places, axis=1) % 11
        logits = tf.gather_nd(
            WEIGHTS.astype("float32"),
            tf.stack([tf.repeat(rows, beam_size), code], axis=1),
        )
        self.calls.append(
            {
                "token_ids": token_ids,
                "position": position,
                "sentence": state.sentence,
                "history": history,
                "slots": slots,
            }
        )
        return logits, SearchState(state.sentence, [history, {"slots": slots}])


def teacher_forced(ids, sentence):
    """Scores ids by the logits of a row after each of their beginnings."""
    history, score = [1], 0.0
    for token_id in ids:
        score += log_softmax(history_logits(history, sentence))[token_id]
        history.append(token_id)
    return score


@functools.cache
def searches():
    """Beam search over `Recorder` as it is and in a graph, for any alpha."""

    def search(caps, alpha, step=None):
        step = step or Recorder()
        return beam_search(
            step,
            step.start(tf.size(caps)),
            caps,
            beam_size=4,
            num_hypotheses=4,
            length_penalty=alpha,
        )

    return search, tf.function(search, autograph=False)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize("graph", [False, True])
def test_the_state_of_a_hypothesis_follows_it(alpha, graph):
    result = searches()[graph](tf.constant(CAPS), tf.constant(alpha))
    ids_of_rows = result.token_ids.numpy()
    for row in range(13):
        for rank, length in enumerate(result.lengths[row].numpy()):
            score = float(result.scores[row, rank])
            if np.isneginf(score):
                continue
            ids = ids_of_rows[row, rank, :length].tolist()
            assert score == pytest.approx(
                teacher_forced(ids, row) / penalty(length, alpha), abs=1e-4
            )
    assert not tf.reduce_all(result.finished)
    assert tf.reduce_any(result.finished)


def test_beams_change_their_slots_and_their_state_goes_with_them():
    step = Recorder()
    result = beam_search(
        step,
        step.start(5),
        [9] * 5,
        beam_size=4,
        num_hypotheses=4,
        constraints=Constraints(min_length=9),
        length_penalty=0.0,
    )
    # The last step saw all but the last id of what was returned alive.
    last = step.calls[-1]
    history = last["history"].numpy().reshape(5, 4, 9)
    assert (history[:, :, 0] == 1).all()
    for row in range(5):
        prefixes = {tuple(each) for each in history[row, :, 1:].tolist()}
        assert len(prefixes) == 4
        for ids in result.token_ids[row].numpy().tolist():
            assert tuple(ids[:8]) in prefixes
    slots = last["slots"].numpy().reshape(5, 4, 9)
    moved = slots[:, :, 1:] != slots[:, :, :-1]
    assert moved.any(axis=(1, 2)).all()
    np.testing.assert_array_equal(slots[:, :, -1], [[0, 1, 2, 3]] * 5)


def test_the_state_of_a_sentence_is_never_copied():
    step = Recorder()
    start = step.start(5)
    beam_search(step, start, [4] * 5, beam_size=3)
    assert len(step.calls) == 4
    for position, call in enumerate(step.calls):
        assert int(call["position"]) == position
        assert call["token_ids"].shape == (15,)
        assert call["sentence"]["row"] is start.sentence["row"]
        assert call["sentence"]["wide"].shape == (5, 3, 2)
    assert (step.calls[0]["token_ids"].numpy() == 1).all()


@pytest.mark.parametrize("leave_together", [1, 3, 8, 1000])
def test_states_go_with_their_rows_when_others_leave(
    monkeypatch, leave_together
):
    monkeypatch.setattr(loop, "LEAVE_TOGETHER", leave_together)
    step = Recorder()
    result = greedy_search(step, step.start(13), CAPS)
    all_ids = result.token_ids.numpy()
    for row, length in enumerate(result.lengths.numpy()):
        assert float(result.scores[row]) == pytest.approx(
            teacher_forced(all_ids[row, :length].tolist(), row), abs=1e-4
        )
    sizes = set()
    for position, call in enumerate(step.calls):
        running = call["sentence"]["row"].numpy()
        assert call["sentence"]["wide"].shape == (len(running), 3, 2)
        np.testing.assert_array_equal(
            call["history"][:, 1:], all_ids[running, :position]
        )
        sizes.add(len(running))
    assert (len(sizes) > 1) == (leave_together > 1)


@pytest.mark.parametrize("leave_together", [3, 8, 1000])
def test_beams_do_not_depend_on_when_rows_leave(monkeypatch, leave_together):
    search, graph = searches()
    # Before the patch, which must not be part of a trace that is kept.
    expected = graph(tf.constant(CAPS), tf.constant(0.6))
    monkeypatch.setattr(loop, "LEAVE_TOGETHER", leave_together)
    step = Recorder()
    result = search(tf.constant(CAPS), 0.6, step)
    assert len({len(call["sentence"]["row"]) for call in step.calls}) > 1
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)


@pytest.mark.parametrize(("alpha", "steps"), [(0.0, 1), (0.6, 1), (2.0, 6)])
def test_a_search_stops_once_no_longer_sentence_can_win(alpha, steps):
    """One step gives eos -0.51, and whatever follows 3 starts at -0.92.

    At length 6 a penalty of (11 / 6) ^ 2 would still lift that above eos.
    """
    calls = []

    def step(token_ids, position, state):
        calls.append(int(position))
        first = np.log([[1e-9, 1e-9, 0.6, 0.4]])
        later = np.log([[1e-9, 1e-9, 1e-9, 1.0]])
        logits = first if position == 0 else later
        return np.repeat(logits, token_ids.shape[0], axis=0), state

    beam_search(step, SearchState(), [6], length_penalty=alpha)
    assert calls == list(range(steps))


@pytest.mark.parametrize("alpha", [-10.0, 0.6, 10.0])
def test_a_dead_end_stops_the_search_however_large_the_cap(alpha):
    calls = []

    def step(token_ids, position, state):
        calls.append(int(position))
        if len(calls) > 5:
            raise RuntimeError("the search goes on")
        logits = np.full((token_ids.shape[0], 4), -np.inf)
        logits[:, 3 if position == 0 else 2] = 0.0
        return logits, state

    result = beam_search(step, SearchState(), [2**31 - 1], length_penalty=alpha)
    assert result.token_ids.numpy().tolist() == [[[3, 2]]]
    assert result.scores.numpy().tolist() == [[0.0]]
    assert calls == [0, 1]


def test_rows_are_selected_in_every_tensor_of_a_nest():
    nest = {"a": tf.range(3), "b": [tf.reshape(tf.range(6), (3, 2)), ()]}
    chosen = select_rows(nest, [2, 0, 2, 1])
    assert chosen["a"].numpy().tolist() == [2, 0, 2, 1]
    assert chosen["b"][0].numpy().tolist() == [[4, 5], [0, 1], [4, 5], [2, 3]]
    assert chosen["b"][1] == ()


def test_only_the_first_axis_and_empty_ones_may_change():
    shapes = loop_shapes([tf.zeros((5, 3, 0, 2)), tf.zeros(()), ()])
    assert shapes[0].as_list() == [None, 3, None, 2]
    assert shapes[1].as_list() == []
    assert shapes[2] == ()
