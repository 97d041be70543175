"""Beam search against an oracle that looks at every sentence."""

import numpy as np
import pytest

from tests.support.exhaustive_search import (
    exhaustive_search,
    log_probability,
    penalty,
)
from tests.support.step_tables import beam, found, random_tables

ALPHAS = (-0.5, 0.0, 0.6, 1.0, 2.0)
TABLES = 20
# The number of extensions of all prefixes at the last step: usable ids are
# V - 2, one of them eos, and the largest length is 5.
WIDE = {4: 2, 5: 48, 6: 324}


def caps():
    return [2 + row % 4 for row in range(TABLES)]


def same_ranking(result, row, hypotheses):
    """Checks scores in order, and ids by their own scores.

    Ids are not compared rank by rank, since rounding may swap two sentences
    whose scores agree to the seventh digit.
    """
    ids = found(result, row)
    assert len(ids) == len(hypotheses)
    assert len(set(ids)) == len(ids)
    expected = np.array([each.score for each in hypotheses])
    np.testing.assert_allclose(
        result.scores[row, : len(ids)], expected, atol=1e-5, rtol=1e-5
    )
    own = {each.ids: each.score for each in hypotheses}
    np.testing.assert_allclose(
        [own[each] for each in ids], expected, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("vocab_size", WIDE)
def test_a_beam_as_wide_as_the_space_ranks_every_sentence(vocab_size, alpha):
    tables = random_tables(TABLES, 5, vocab_size, seed=vocab_size)
    width = WIDE[vocab_size]
    result = beam(tables, caps(), width, beam_size=width, length_penalty=alpha)
    for row, cap in enumerate(caps()):
        finished, cut = exhaustive_search(tables[row], cap, alpha=alpha)
        ranked = [*finished, *cut][:width]
        same_ranking(result, row, ranked)
        kept = len(ranked)
        assert (
            result.finished[row, :kept].tolist()
            == ([True] * len(finished) + [False] * len(cut))[:kept]
        )
        assert found(result, row)[0] == ranked[0].ids


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("vocab_size", WIDE)
def test_stopping_early_never_loses_the_best(vocab_size, alpha):
    tables = random_tables(TABLES, 5, vocab_size, seed=10 + vocab_size)
    for wanted in (1, 2):
        result = beam(
            tables,
            caps(),
            wanted,
            beam_size=WIDE[vocab_size],
            length_penalty=alpha,
        )
        for row, cap in enumerate(caps()):
            finished, _ = exhaustive_search(tables[row], cap, alpha=alpha)
            same_ranking(result, row, finished[:wanted])


@pytest.mark.parametrize("min_length", [2, 4])
def test_constraints_leave_the_best_of_what_is_allowed(min_length):
    tables = random_tables(TABLES, 5, 6, seed=3)
    forbidden_ids = (0, 1, 4)
    result = beam(
        tables,
        [5] * TABLES,
        9,
        beam_size=WIDE[6],
        min_length=min_length,
        forbidden_ids=forbidden_ids,
    )
    for row in range(TABLES):
        finished, _ = exhaustive_search(
            tables[row],
            5,
            alpha=0.6,
            min_length=min_length,
            forbidden_ids=forbidden_ids,
        )
        same_ranking(result, row, finished[:9])


@pytest.mark.parametrize("beam_size", [10, 50])
def test_a_beam_wider_than_the_vocabulary_finds_all_there_is(beam_size):
    tables = random_tables(TABLES, 3, 6, seed=4)
    result = beam(tables, [3] * TABLES, beam_size, beam_size=beam_size)
    for row in range(TABLES):
        finished, cut = exhaustive_search(tables[row], 3, alpha=0.6)
        if beam_size == 50:
            same_ranking(result, row, [*finished, *cut])
            unused = slice(len(finished) + len(cut), None)
            assert (result.lengths[row, unused] == 0).all()
            assert np.isneginf(result.scores[row, unused]).all()
            assert not result.finished[row, unused].any()
            assert (result.token_ids[row, unused] == 0).all()
        assert found(result, row)[0] == finished[0].ids


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 1.0])
def test_scores_of_swapping_beams_are_those_of_teacher_forcing(alpha):
    tables = random_tables(30, 8, 9, seed=5, scale=1.0)
    result = beam(tables, [8] * 30, 3, beam_size=3, length_penalty=alpha)
    for row in range(30):
        for rank, ids in enumerate(found(result, row)):
            expected = log_probability(tables[row], ids)
            assert result.scores[row, rank] == pytest.approx(
                expected / penalty(len(ids), alpha), abs=1e-4
            )
            if result.finished[row, rank]:
                assert ids.index(2) + 1 == len(ids)
            else:
                assert 2 not in ids
                assert len(ids) == 8
            assert (result.token_ids[row, rank, len(ids) :] == 0).all()


def test_the_n_best_are_distinct_and_sorted():
    tables = random_tables(50, 6, 7, seed=6)
    result = beam(tables, [6] * 50, 5, beam_size=5)
    both = 0
    for row in range(50):
        ids = found(result, row)
        assert len(set(ids)) == len(ids)
        finished = result.finished[row]
        both += finished.any() and not finished.all()
        assert sorted(finished, reverse=True) == finished.tolist()
        for group in (finished, ~finished):
            scores = result.scores[row, group]
            assert (scores[:-1] >= scores[1:]).all()
    assert both > 5
