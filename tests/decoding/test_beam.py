"""Beam search on tables whose answers can be worked out by hand."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import SearchState, beam_search, greedy_search
from tests.support.exhaustive_search import (
    exhaustive_search,
    penalty,
)
from tests.support.step_tables import (
    IMPOSSIBLE,
    as_keywords,
    beam,
    found,
    greedy,
    path_table,
    random_attention,
    random_tables,
    swap_table,
    table_step,
)

LONG = (4, 4, 4, 4, 4, 2)


def test_the_oracle_knows_the_eight_sentences_of_the_swap_table():
    finished, cut = exhaustive_search(swap_table(), 7)
    assert len(finished) == 8
    assert cut == []
    scores = {each.ids: each.score for each in finished}
    assert scores[3, 2] == pytest.approx(-1.0, abs=1e-5)
    assert scores[LONG] == pytest.approx(-1.3, abs=1e-5)


@pytest.mark.parametrize(
    ("alpha", "winner"), [(0.0, (3, 2)), (0.6, LONG), (1.0, LONG)]
)
@pytest.mark.parametrize("beam_size", [2, 4, 8])
def test_the_length_penalty_decides_between_short_and_long(
    beam_size, alpha, winner
):
    result = beam(
        [swap_table()], [7], beam_size=beam_size, length_penalty=alpha
    )
    assert found(result) == [winner]


@pytest.mark.parametrize(
    ("form", "alpha", "winner"),
    [
        # Where (11 / 7) ^ alpha passes 1.3, and where (6 / 2) ^ alpha does.
        (0, 0.55, (3, 2)),
        (0, 0.61, LONG),
        (1, 0.21, (3, 2)),
        (1, 0.26, LONG),
    ],
)
def test_the_form_of_the_length_penalty_decides_how_much_it_helps(
    form, alpha, winner
):
    options = {"length_penalty": alpha, "length_penalty_form": form}
    result = beam([swap_table()], [7], beam_size=2, **options)
    assert found(result) == [winner]
    expected = {(3, 2): -1.0, LONG: -1.3}[winner]
    assert result.scores[0, 0] == pytest.approx(
        expected / penalty(len(winner), alpha, form), abs=1e-5
    )


@pytest.mark.parametrize(
    ("early_stopping", "alpha", "winner"),
    [
        (False, 0.6, LONG),
        (True, 0.6, (3, 2)),
        (False, 0.0, (3, 2)),
        (True, 0.0, (3, 2)),
    ],
)
def test_early_stopping_ends_with_what_has_finished(
    early_stopping, alpha, winner
):
    """3 2 and 3 5 2 finish first; a longer one might still beat them."""
    result = beam(
        [swap_table()],
        [7],
        beam_size=2,
        length_penalty=alpha,
        early_stopping=early_stopping,
    )
    assert found(result) == [winner]


@pytest.mark.parametrize(("beam_size", "steps"), [(1, 1), (2, 3), (3, 4)])
def test_early_stopping_waits_for_as_many_as_the_beam_is_wide(beam_size, steps):
    """Whatever is wanted, and though the bound says that 2 is the best."""
    table = path_table(
        5, 4, (0, 1, {2: 0.9, 3: 0.1}), (None, 3, {3: 0.9, 2: 0.1})
    )
    table[1, 3] = [IMPOSSIBLE] * 3 + [0.0]
    calls = []

    def step(token_ids, position, state):
        calls.append(int(position))
        return table_step(token_ids, position, state)

    for early_stopping, expected in ((True, steps), (False, 1)):
        calls.clear()
        result = beam_search(
            step,
            SearchState(sentence=tf.constant(table[None])),
            [5],
            beam_size=beam_size,
            length_penalty=0.0,
            early_stopping=early_stopping,
        )
        assert len(calls) == expected
        assert result.token_ids.numpy().tolist() == [[[2]]]


def test_early_stopping_may_be_a_number():
    for flag, winner in ((1, (3, 2)), (0, LONG), (np.int32(1), (3, 2))):
        result = beam_search(
            table_step,
            SearchState(sentence=tf.constant(swap_table()[None])),
            [7],
            beam_size=2,
            early_stopping=flag,
        )
        assert tuple(result.token_ids.numpy()[0, 0].tolist()) == winner


def test_a_finished_hypothesis_survives_longer_ones():
    result = beam([swap_table()], [7], 2, beam_size=2, length_penalty=0.0)
    assert found(result) == [(3, 2), LONG]
    np.testing.assert_allclose(result.scores[0], [-1.0, -1.3], atol=1e-5)
    assert result.token_ids[0].tolist() == [[3, 2, 0, 0, 0, 0], [*LONG]]


def test_beam_search_finds_what_greedy_search_misses():
    table = path_table(
        3, 6,
        (0, 1, {3: 0.6, 4: 0.4}),
        (1, 3, {3: 0.4, 4: 0.3, 2: 0.3}),
        (2, 3, {2: 1.0}),
        (1, 4, {2: 1.0}),
        (2, 4, {2: 1.0}),
    )  # fmt: skip
    assert greedy([table], [3]).token_ids.tolist() == [[3, 3, 2]]
    result = beam([table], [3], beam_size=2, length_penalty=0.0)
    assert found(result) == [(4, 2)]
    assert result.scores[0, 0] == pytest.approx(np.log(0.4), abs=1e-6)


def test_a_penalty_that_prefers_short_ones_still_waits_for_the_next_id():
    """At the largest length 3 could not win any more; at the next it does."""
    table = path_table(2, 4, (0, 1, {2: 0.3, 3: 0.7}), (1, 3, {2: 1.0}))
    result = beam([table], [20], beam_size=2, length_penalty=-2.0)
    assert found(result) == [(3, 2)]
    assert result.scores[0, 0] == pytest.approx(
        np.log(0.7) * (7 / 6) ** 2, abs=1e-5
    )


def test_nothing_follows_eos():
    table = path_table(
        5, 7,
        (0, 1, {3: 0.6, 2: 0.3, 4: 0.1}),
        (None, 3, {3: 0.5, 2: 0.5}),
        (None, 4, {2: 1.0}),
        (None, 2, {5: 1.0}),
    )  # fmt: skip
    result = beam([table], [5], 4, beam_size=4, length_penalty=0.0)
    ids = found(result)
    assert len(ids) == 4
    for rank, hypothesis in enumerate(ids):
        assert hypothesis.count(2) == 1
        assert hypothesis[-1] == 2
        assert (result.token_ids[0, rank, len(hypothesis) :] == 0).all()
    # Each of the five sentences: 2; 3 2; 3 3 2; 3 3 3 2; 4 2.
    np.testing.assert_allclose(
        result.scores[0], np.log([0.3, 0.3, 0.15, 0.1]), atol=1e-5
    )
    assert ids == [(2,), (3, 2), (3, 3, 2), (4, 2)]


def test_an_ended_hypothesis_takes_no_place_among_the_alive():
    """After eos in second place, 3 and 4 are alive: 4 ends at once."""
    table = path_table(
        2, 9,
        (0, 1, {3: 0.45, 2: 0.35, 4: 0.2}),
        (1, 3, {token_id: 0.2 for token_id in range(4, 9)}),
        (1, 4, {2: 1.0}),
    )  # fmt: skip
    result = beam([table], [2], 2, beam_size=2, length_penalty=0.0)
    assert found(result) == [(2,), (4, 2)]
    assert result.finished.all()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6])
def test_impossible_steps_leave_empty_slots_and_no_nan(alpha, dtype):
    table = path_table(
        4, 7,
        (0, 1, {5: 1.0}), (1, 5, {3: 1.0}), (2, 3, {6: 1.0}), (3, 6, {2: 1.0}),
    )  # fmt: skip
    result = beam(
        [table.astype(dtype)], [4], 4, beam_size=4, length_penalty=alpha
    )
    assert result.scores.tolist() == [[0.0] + 3 * [IMPOSSIBLE]]
    assert result.lengths.tolist() == [[4, 0, 0, 0]]
    assert result.finished.tolist() == [[True, False, False, False]]
    assert result.token_ids[0].tolist() == [[5, 3, 6, 2]] + 3 * [[0] * 4]


@pytest.mark.parametrize("alpha", [-60.0, 60.0])
def test_a_penalty_that_float32_cannot_hold_loses_and_invents_nothing(alpha):
    """(45 / 6) ^ 60 is 1e52: 3 ... 3 eos is still the one hypothesis."""
    table = path_table(
        40, 5, (0, 1, {3: 1.0}), (None, 3, {3: 1.0}), (39, 3, {2: 0.5, 0: 0.5})
    )
    table[39, 3, 3] = IMPOSSIBLE
    result = beam([table], [40], 2, beam_size=2, length_penalty=alpha)
    assert result.lengths.tolist() == [[40, 0]]
    assert result.finished.tolist() == [[True, False]]
    assert np.isfinite(result.scores[0, 0])
    assert result.scores[0, 1] == IMPOSSIBLE


def test_a_dead_end_gives_no_hypothesis():
    table = path_table(4, 6, (0, 1, {3: 1.0}))
    result = beam([table], [4], 2)
    assert result.scores.tolist() == [[IMPOSSIBLE] * 2]
    assert result.lengths.tolist() == [[0, 0]]
    assert result.token_ids.shape == (1, 2, 0)
    assert not result.finished.any()


def test_hypotheses_cut_at_the_cap_come_unfinished_behind_the_finished():
    table = path_table(
        3, 6,
        (0, 1, {3: 0.9, 2: 0.1}),
        (None, 3, {3: 0.8, 4: 0.2}),
        (None, 4, {4: 1.0}),
    )  # fmt: skip
    result = beam([table], [3], 4, beam_size=4, length_penalty=0.0)
    assert found(result) == [(2,), (3, 3, 3), (3, 4, 4), (3, 3, 4)]
    assert result.finished.tolist() == [[True, False, False, False]]
    np.testing.assert_allclose(
        np.exp(result.scores[0]), [0.1, 0.576, 0.18, 0.144], atol=1e-6
    )


def test_a_slow_neighbour_changes_nothing():
    fast, slow = random_tables(2, 31, 7, seed=1)
    fast[:2, :, 2] = -20.0
    fast[2:, :, 2] = 20.0
    slow[:29, :, 2] = -50.0
    slow[29:, :, 2] = 50.0
    alone = beam([fast], [31], 4)
    beside = beam([slow, fast, slow], [31, 31, 31], 4)
    assert alone.lengths.tolist() == [[3, 3, 3, 3]]
    assert beside.lengths[0].tolist() == [30, 30, 30, 30]
    assert found(beside, 1) == found(alone)
    assert (beside.token_ids[1, :, 3:] == 0).all()
    np.testing.assert_allclose(beside.scores[1], alone.scores[0], rtol=1e-6)
    np.testing.assert_array_equal(beside.finished[1], alone.finished[0])


@pytest.mark.parametrize("beam_size", [1, 3, 4])
def test_rows_do_not_depend_on_their_batch(beam_size):
    tables = random_tables(11, 9, 8, seed=7, scale=1.5)
    caps = [1 + row % 9 for row in range(11)]
    together = beam(tables, caps, beam_size, beam_size=beam_size)
    order = np.random.default_rng(0).permutation(11)
    shuffled = beam(
        tables[order], np.array(caps)[order], beam_size, beam_size=beam_size
    )
    for place, row in enumerate(order):
        alone = beam(
            tables[row : row + 1], [caps[row]], beam_size, beam_size=beam_size
        )
        for result, index in ((alone, 0), (shuffled, place)):
            assert found(result, index) == found(together, row)
            np.testing.assert_allclose(
                result.scores[index], together.scores[row], rtol=1e-6
            )


def test_ties_go_to_the_lower_id():
    table = np.zeros((2, 8, 8), "float32")
    table[0, 1, 2] = -9.0
    table[1, :, 2] = 9.0
    result = beam([table], [2], 4, beam_size=4)
    assert found(result) == [(3, 2), (4, 2), (5, 2), (6, 2)]
    assert greedy([table], [2]).token_ids.tolist() == [[3, 2]]


def test_eos_waits_for_the_smallest_length():
    tables = random_tables(30, 6, 6, seed=8)
    tables[..., 2] += 3.0
    free = beam(tables, [6] * 30, 4)
    assert (free.lengths == 1).any()
    for min_length in (-3, 0, 1):
        same = beam(tables, [6] * 30, 4, min_length=min_length)
        np.testing.assert_array_equal(same.token_ids, free.token_ids)
    held = beam(tables, [6] * 30, 4, min_length=4)
    assert held.lengths.min() == 4
    assert (held.lengths[held.finished] == 4).any()


def test_a_smallest_length_beyond_the_largest_gives_unfinished_ones():
    tables = random_tables(5, 3, 6, seed=9)
    result = beam(tables, [3] * 5, 4, min_length=8)
    assert not result.finished.any()
    assert (result.lengths == 3).all()


def test_forbidden_ids_never_appear_however_likely():
    tables = random_tables(20, 5, 11, seed=10)
    forbidden = [0, 1, 7, 9, 10]
    tables[..., forbidden] += 20.0
    options = {"forbidden_ids": forbidden}
    ids = [
        each
        for row in range(20)
        for each in found(beam(tables, [5] * 20, 4, **options), row)
    ]
    assert {token_id for each in ids for token_id in each} == {2, 3, 4, 5, 6, 8}
    greedy_result = greedy(tables, [5] * 20, **options)
    for row in range(20):
        kept = greedy_result.token_ids[row, : greedy_result.lengths[row]]
        assert not set(kept.tolist()) & set(forbidden)


def test_scores_are_the_models_own_with_forbidden_ids_in_the_normaliser():
    table = path_table(1, 6, (0, 1, {0: 0.5, 4: 0.25, 2: 0.25}))
    result = beam([table], [1], 1, length_penalty=0.0)
    assert found(result) == [(2,)]
    assert result.scores[0, 0] == pytest.approx(np.log(0.25), abs=1e-6)


@pytest.mark.parametrize("forbidden_ids", [(), (5,)])
def test_pad_and_bos_are_never_generated(forbidden_ids):
    tables = random_tables(3, 4, 6, seed=11)
    tables[..., :2] += 20.0
    for search in (beam, greedy):
        result = search(tables, [4, 4, 4], forbidden_ids=forbidden_ids)
        assert result.lengths.min() > 0
        generated = result.token_ids.reshape(3, -1)
        assert 1 not in generated
        for row, length in zip(generated, result.lengths.ravel(), strict=True):
            assert 0 not in row[:length]


def test_bos_may_be_the_id_that_ends_a_sentence():
    """Some models start from eos; it may still be generated."""
    table = path_table(3, 5, (0, 2, {3: 1.0}), (1, 3, {2: 0.9, 4: 0.1}))
    state = SearchState(sentence=tf.constant(table[None]))
    for search in (beam_search, greedy_search):
        result = search(table_step, state, [3], bos_id=2)
        assert result.token_ids.numpy().ravel().tolist() == [3, 2]
        assert result.finished.numpy().all()


def test_a_batch_may_have_no_rows():
    result = beam(np.zeros((0, 3, 6, 6), "float32"), [], 3)
    assert result.token_ids.shape == (0, 3, 0)
    for field in (result.lengths, result.scores, result.finished):
        assert field.shape == (0, 3)


def test_a_largest_length_of_zero_or_less_generates_nothing():
    tables = random_tables(4, 3, 6, seed=12)
    result = beam(tables, [0, 3, -2, 3], 2)
    alone = beam(tables[[1, 3]], [3, 3], 2)
    for row in (0, 2):
        assert result.lengths[row].tolist() == [0, 0]
        assert result.scores[row].tolist() == [0.0, IMPOSSIBLE]
        assert (result.token_ids[row] == 0).all()
        assert not result.finished[row].any()
    np.testing.assert_array_equal(result.token_ids[[1, 3]], alone.token_ids)
    np.testing.assert_allclose(result.scores[[1, 3]], alone.scores, rtol=1e-6)
    nothing = beam(tables, [0, -1, 0, 0], 2)
    assert nothing.token_ids.shape == (4, 2, 0)


OPTIONS = {
    "length_penalty": 0.8,
    "length_penalty_form": 1,
    "coverage_penalty": 0.5,
    "early_stopping": True,
    "target_prefix": [[4, 3, 0], [0, 0, 0], [5, 0, 0], [3, 3, 3], [4, 0, 0]],
    "min_length": 3,
    "forbidden_ids": [0, 1],
    "no_repeat_ngram_size": 2,
    "repetition_penalty": 1.5,
}


@pytest.mark.parametrize("name", [None, *OPTIONS, "all"])
def test_options_may_be_numbers_or_tensors_in_a_graph_or_not(name):
    """Eager and as numbers here, in a graph and as tensors in `beam`."""
    tables = random_tables(5, 6, 6, seed=13)
    attention = random_attention(5, 6, 6, seed=13)
    caps = [6, 2, 5, 0, 6]
    options = OPTIONS if name == "all" else {}
    if name in OPTIONS:
        options = {name: OPTIONS[name]}
    eager = beam_search(
        table_step,
        SearchState(sentence=(tf.constant(tables), tf.constant(attention))),
        tf.constant(caps),
        num_hypotheses=3,
        **as_keywords(options),
    )
    graph = beam(tables, caps, 3, attention, **options)
    for one, other in zip(eager, graph, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5)
    # Each option matters here, else the comparison would say nothing.
    if name not in (None, "forbidden_ids"):
        plain = beam(tables, caps, 3, attention)
        assert not np.array_equal(graph.scores, plain.scores)


def test_numbers_may_be_options_of_a_graph():
    tables = random_tables(5, 6, 6, seed=13)
    attention = random_attention(5, 6, 6, seed=13)
    search = tf.function(
        lambda tables, attention: beam_search(
            table_step,
            SearchState(sentence=(tables, attention)),
            [6, 2, 5, 0, 6],
            num_hypotheses=3,
            **as_keywords(OPTIONS),
        ),
        input_signature=[
            tf.TensorSpec([None] * 4, tf.float32),
            tf.TensorSpec([None] * 5, tf.float32),
        ],
    )
    result = search(tables, attention)
    expected = beam(tables, [6, 2, 5, 0, 6], 3, attention, **OPTIONS)
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5)


@pytest.mark.parametrize("vocab_size", [1, 2, 3])
@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_a_vocabulary_may_be_as_small_as_it_likes(vocab_size, beam_size):
    """Of ids 0 to 2 (pad, bos, eos) only the last may be generated."""

    def step(token_ids, position, state):
        return tf.zeros((tf.size(token_ids), vocab_size)), state

    result = beam_search(
        step, SearchState(), [4, 0, 4], beam_size=beam_size, length_penalty=0.0
    )
    found = vocab_size == 3
    assert result.lengths.numpy().tolist() == [[int(found)], [0], [int(found)]]
    assert result.finished.numpy().tolist() == [[found], [False], [found]]
    expected = np.log(1 / 3) if found else -np.inf
    np.testing.assert_allclose(
        result.scores, [[expected], [0.0], [expected]], rtol=1e-6
    )


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_an_end_that_is_padding_is_refused(search):
    message = "pad_id must be another id than eos_id.*got pad_id=2, eos_id=2"
    with pytest.raises(ValueError, match=message):
        search(None, SearchState(), [3], pad_id=2)
