"""A forced start, prepared and searched from."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import (
    Constraints,
    SearchState,
    beam_search,
    greedy_search,
)
from keras_transformer.decoding.prefix import (
    forced_at,
    forced_ids,
    prefix_length,
)
from tests.support.exhaustive_search import (
    exhaustive_search,
    log_probability,
    plain_greedy,
)
from tests.support.step_tables import (
    beam,
    found,
    greedy,
    padded,
    path_table,
    random_tables,
    table_step,
)

RAGGED = [[3, 4], [], [5], [4, 3, 5, 5], [3, 3, 3]]
# Greedy search has no length penalty.
UNPENALIZED = {beam: {"length_penalty": 0.0}, greedy: {}}


def test_ids_are_forced_up_to_the_first_padding():
    prefix = [[5, 6, 7], [5, 0, 0], [0, 6, 7], [5, 0, 7]]
    assert forced_ids(prefix, 4, 0).numpy().tolist() == [
        [5, 6, 7, -1],
        [5, -1, -1, -1],
        [-1, -1, -1, -1],
        [5, -1, -1, -1],
    ]


def test_the_padding_may_be_another_id():
    assert forced_ids([[0, 9, 9]], 1, 9).numpy().tolist() == [[0, -1, -1, -1]]


def test_one_start_serves_all_rows():
    forced = forced_ids(tf.constant([[5, 6, 0]]), tf.constant(3), 0)
    assert forced.numpy().tolist() == 3 * [[5, 6, -1, -1]]
    assert forced_ids([[5, 6]], 0, 0).shape == (0, 3)


@pytest.mark.parametrize(
    "prefix", [None, [[]], np.zeros((1, 0), "int32"), np.zeros((3, 0), "int32")]
)
def test_without_a_start_all_rows_are_free(prefix):
    forced = forced_ids(prefix, 3, 0)
    assert forced.numpy().tolist() == [[-1], [-1], [-1]]
    assert prefix_length(forced) == 0
    assert isinstance(prefix_length(forced), int)


def test_each_position_has_its_forced_ids_and_the_last_stands_for_the_rest():
    forced = forced_ids(padded(RAGGED), 5, 0)
    by_position = [
        forced_at(place, forced).numpy().tolist() for place in (0, 3)
    ]
    assert by_position == [[3, -1, 5, 4, 3], [-1, -1, -1, 5, -1]]
    for position in (4, 5, 99):
        assert (forced_at(position, forced).numpy() == -1).all()
    assert int(prefix_length(forced)) == 4


def starts_with(ids, prefix):
    return list(ids[: len(prefix)]) == prefix[: len(ids)]


def test_each_row_starts_as_it_must_and_goes_on_as_it_likes():
    tables = random_tables(5, 6, 6, seed=1)
    caps = [6, 5, 4, 5, 6]
    one = greedy(tables, caps, target_prefix=padded(RAGGED))
    # As wide as the space, which a row without a start has of 6 ids.
    wide = beam(tables, caps, 2, beam_size=324, target_prefix=padded(RAGGED))
    for row, prefix in enumerate(RAGGED):
        ids, score = plain_greedy(tables[row], caps[row], target_prefix=prefix)
        assert starts_with(ids, prefix)
        assert tuple(one.token_ids[row, : one.lengths[row]].tolist()) == ids
        assert one.scores[row] == pytest.approx(score, abs=1e-4)
        finished, cut = exhaustive_search(
            tables[row], caps[row], length_penalty=0.6, target_prefix=prefix
        )
        best = [*finished, *cut][:2]
        assert found(wide, row) == [each.ids for each in best]
        np.testing.assert_allclose(
            wide.scores[row], [each.score for each in best], atol=1e-5
        )


def test_a_row_without_a_start_does_what_it_does_alone():
    tables = random_tables(5, 6, 6, seed=1)
    forced = beam(tables, [6] * 5, 4, target_prefix=padded(RAGGED))
    free = beam(tables, [6] * 5, 4)
    assert found(forced, 1) == found(free, 1)
    np.testing.assert_array_equal(forced.scores[1], free.scores[1])
    for row in (0, 2, 3, 4):
        assert found(forced, row) != found(free, row)


@pytest.mark.parametrize("search", [beam, greedy])
def test_one_start_for_all_rows_is_that_of_each(search):
    tables = random_tables(5, 6, 6, seed=2)
    one = search(tables, [6] * 5, target_prefix=[[4, 3, 0]])
    each = search(tables, [6] * 5, target_prefix=[[4, 3]] * 5)
    for shared, own in zip(one, each, strict=True):
        np.testing.assert_array_equal(shared, own)
    assert (one.token_ids[..., :2] == [4, 3]).all()


def test_the_beam_is_full_again_behind_the_start():
    tables = random_tables(3, 6, 9, seed=3)
    result = beam(tables, [6] * 3, 4, target_prefix=[[5, 7, 5]])
    for row in range(3):
        ids = found(result, row)
        assert len(set(ids)) == 4
        assert all(each[:3] == (5, 7, 5) for each in ids)


@pytest.mark.parametrize("search", [beam, greedy])
def test_a_start_longer_than_the_cap_is_cut(search):
    tables = random_tables(4, 6, 6, seed=4)
    result = search(
        tables,
        [2, 0, 4, 3],
        target_prefix=[[5, 4, 3, 5]],
        **UNPENALIZED[search],
    )
    assert result.lengths.ravel().tolist() == [2, 0, 4, 3]
    assert not result.finished.any()
    ids = result.token_ids.reshape(4, 4).tolist()
    assert ids == [[5, 4, 0, 0], [0] * 4, [5, 4, 3, 5], [5, 4, 3, 0]]
    for row in range(4):
        kept = ids[row][: result.lengths.ravel()[row]]
        assert result.scores.ravel()[row] == pytest.approx(
            log_probability(tables[row], kept), abs=1e-4
        )


@pytest.mark.parametrize("search", [beam, greedy])
def test_a_start_that_holds_eos_ends_there(search):
    """Even before the smallest length."""
    tables = random_tables(3, 6, 6, seed=5)
    result = search(
        tables,
        [6, 6, 6],
        target_prefix=[[4, 2, 5], [2, 0, 0], [4, 3, 2]],
        min_length=5,
        **UNPENALIZED[search],
    )
    assert result.finished.all()
    assert result.token_ids.reshape(3, 3).tolist() == [
        [4, 2, 0],
        [2, 0, 0],
        [4, 3, 2],
    ]
    for row, ids in enumerate([(4, 2), (2,), (4, 3, 2)]):
        assert result.scores.ravel()[row] == pytest.approx(
            log_probability(tables[row], ids), abs=1e-4
        )


def test_a_start_that_ends_leaves_no_other_hypothesis():
    tables = random_tables(2, 6, 6, seed=6)
    result = beam(tables, [6, 6], 3, target_prefix=[[4, 2]])
    for row in range(2):
        assert found(result, row) == [(4, 2)]
        assert result.lengths[row].tolist() == [2, 0, 0]


@pytest.mark.parametrize("search", [beam, greedy])
def test_what_is_forced_comes_whatever_is_forbidden(search):
    """A forbidden id, bos, and 2-grams that come twice."""
    tables = random_tables(3, 8, 7, seed=7)
    prefixes = [[6, 6, 6], [5, 1, 5, 1], [3, 4, 3, 4]]
    result = search(
        tables,
        [8] * 3,
        target_prefix=padded(prefixes),
        forbidden_ids=(0, 1, 6),
        no_repeat_ngram_size=2,
    )
    for row, prefix in enumerate(prefixes):
        ids = result.token_ids.reshape(3, -1)[row].tolist()
        assert ids[: len(prefix)] == prefix
        assert not {1, 6} & set(ids[len(prefix) :])


@pytest.mark.parametrize("search", [beam, greedy])
def test_a_forced_id_that_is_impossible_is_a_dead_end(search):
    path = path_table(
        4, 6,
        (0, 1, {3: 0.5, 4: 0.5}),
        (1, 3, {2: 1.0}),
        (1, 4, {5: 1.0}),
        (2, 5, {2: 1.0}),
    )  # fmt: skip
    result = search(
        [path] * 4, [4] * 4, target_prefix=[[4, 3], [5, 0], [4, 5], [3, 0]]
    )
    assert result.lengths.ravel().tolist() == [0, 0, 3, 2]
    assert result.finished.ravel().tolist() == [False, False, True, True]
    assert np.isneginf(result.scores.ravel()[:2]).all()
    assert np.isfinite(result.scores.ravel()[2:]).all()
    assert (result.token_ids[:2] == 0).all()


def test_a_start_may_be_a_list_an_array_or_a_tensor():
    tables = random_tables(3, 5, 6, seed=8)
    state = SearchState(sentence=tf.constant(tables))
    for search in (beam_search, greedy_search):
        results = [
            search(
                table_step,
                state,
                [5] * 3,
                constraints=Constraints(target_prefix=prefix),
            )
            for prefix in (
                [[4, 3]],
                np.array([[4, 3, 0]]),
                tf.constant([[4, 3]]),
            )
        ]
        for result in results[1:]:
            for one, other in zip(result, results[0], strict=True):
                np.testing.assert_array_equal(one, other)
        assert (results[0].token_ids[..., :2].numpy() == [4, 3]).all()
