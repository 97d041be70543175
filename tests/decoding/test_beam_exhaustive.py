"""Beam search against oracles: every sentence, and a plain beam."""

import itertools

import numpy as np
import pytest

from tests.support.exhaustive_search import (
    exhaustive_search,
    log_probability,
    penalty,
    plain_beam,
    ranked,
    sentences,
)
from tests.support.step_tables import (
    beam,
    found,
    padded,
    path_table,
    random_attention,
    random_tables,
    swap_table,
)

ALPHAS = (-0.5, 0.0, 0.6, 1.0, 2.0)
TABLES = 500
# The number of extensions of all prefixes at the last step: usable ids are
# V - 2, one of them eos, and the largest length is 5.
WIDE = {4: 2, 5: 48, 6: 324}
SWITCHES = tuple(itertools.product([False, True], repeat=4))


def trial_tables(vocab_size):
    """The share of `TABLES` that has one vocabulary, and their caps."""
    count = (TABLES + 6 - vocab_size) // 3
    tables = random_tables(count, 5, vocab_size, seed=vocab_size)
    return tables, [2 + row % 4 for row in range(count)]


def named_tables():
    """The swap table, a single path, and one that goes on after eos."""
    path = path_table(
        7, 6,
        (0, 1, {5: 1.0}), (1, 5, {3: 1.0}), (2, 3, {4: 1.0}), (3, 4, {2: 1.0}),
    )  # fmt: skip
    after_eos = path_table(
        7, 6,
        (0, 1, {3: 0.6, 2: 0.3, 4: 0.1}),
        (None, 3, {3: 0.5, 2: 0.5}),
        (None, 4, {2: 1.0}),
        (None, 2, {5: 1.0}),
    )  # fmt: skip
    return np.stack([swap_table(), path, after_eos]), [7, 4, 5]


def with_named(tables, caps):
    more, more_caps = named_tables()
    last = np.repeat(tables[:, -1:], more.shape[1] - tables.shape[1], axis=1)
    tables = np.concatenate([tables, last], axis=1)
    return np.concatenate([tables, more]), [*caps, *more_caps]


def same_ranking(result, row, finished, cut=(), tolerance=1e-5):
    """Checks scores in order, and ids by their own scores.

    Ids are not compared rank by rank, since rounding may swap two sentences
    whose scores agree to the seventh digit.
    """
    wanted = result.scores.shape[1]
    hypotheses = [*finished, *cut]
    expected = np.array([each.score for each in hypotheses[:wanted]])
    ids = found(result, row)
    assert len(ids) == len(expected)
    assert len(set(ids)) == len(ids)
    own = {each.ids: each.score for each in hypotheses}
    for scores in (result.scores[row, : len(ids)], [own[each] for each in ids]):
        np.testing.assert_allclose(
            scores, expected, atol=tolerance, rtol=tolerance
        )
    flags = result.finished[row].tolist()
    assert flags == [rank < len(finished) for rank in range(wanted)]
    np.testing.assert_array_equal(
        result.lengths[row], [*map(len, ids)] + (wanted - len(ids)) * [0]
    )


@pytest.mark.parametrize("vocab_size", WIDE)
def test_a_beam_as_wide_as_the_space_finds_the_best(vocab_size):
    tables, caps = trial_tables(vocab_size)
    if vocab_size == 6:
        tables, caps = with_named(tables, caps)
    spaces = [sentences(*each) for each in zip(tables, caps, strict=True)]
    for alpha in ALPHAS:
        result = beam(
            tables,
            caps,
            num_hypotheses=2,
            beam_size=WIDE[vocab_size],
            length_penalty=alpha,
        )
        for row, space in enumerate(spaces):
            ranking = [ranked(each, length_penalty=alpha) for each in space]
            same_ranking(result, row, *ranking)


def drawn_constraints(switches, vocab_size, rows, generator):
    """Draws a value of each option whose switch is on."""
    options = {}
    if switches[0]:
        options["min_length"] = int(generator.integers(2, 5))
    if switches[1]:
        options["no_repeat_ngram_size"] = int(generator.integers(1, 4))
    if switches[2]:
        options["forbidden_ids"] = (0, 1, int(generator.integers(2, 6)))
    prefixes = [()] * rows
    if switches[3]:
        # Any id but pad, and eos but seldom.
        ids = [*range(1, vocab_size), *list(range(3, vocab_size)) * 3]
        prefixes = [
            generator.choice(ids, generator.integers(0, 4)).tolist()
            for _ in range(rows)
        ]
    return options, prefixes


@pytest.mark.parametrize("vocab_size", WIDE)
def test_constraints_leave_the_best_of_what_is_allowed(vocab_size):
    """Smallest length, n-gram block, forbidden ids, forced start: all 16."""
    all_tables, all_caps = trial_tables(vocab_size)
    generator = np.random.default_rng(20 + vocab_size)
    shares = np.array_split(np.arange(len(all_tables)), len(SWITCHES))
    for switches, share in zip(SWITCHES, shares, strict=True):
        tables, caps = all_tables[share], [all_caps[row] for row in share]
        if vocab_size == 6:
            tables, caps = with_named(tables, caps)
        options, prefixes = drawn_constraints(
            switches, vocab_size, len(tables), generator
        )
        spaces = [
            sentences(table, cap, target_prefix=prefix, **options)
            for table, cap, prefix in zip(tables, caps, prefixes, strict=True)
        ]
        for alpha in ALPHAS:
            result = beam(
                tables,
                caps,
                num_hypotheses=2,
                beam_size=WIDE[vocab_size],
                length_penalty=alpha,
                target_prefix=padded(prefixes),
                **options,
            )
            for row, space in enumerate(spaces):
                ranking = [ranked(each, length_penalty=alpha) for each in space]
                same_ranking(result, row, *ranking)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("vocab_size", WIDE)
def test_a_beam_as_wide_as_the_space_ranks_every_sentence(vocab_size, alpha):
    tables, caps = trial_tables(vocab_size)
    tables, caps = tables[:20], caps[:20]
    width = WIDE[vocab_size]
    result = beam(tables, caps, width, beam_size=width, length_penalty=alpha)
    for row, cap in enumerate(caps):
        same_ranking(
            result,
            row,
            *exhaustive_search(tables[row], cap, length_penalty=alpha),
        )


def drawn_options(vocab_size, rows, generator):
    """Draws a value, off or on, of every option that beam search has."""
    options, prefixes = drawn_constraints(
        generator.random(4) < 0.5, vocab_size, rows, generator
    )
    draw = generator.choice
    options |= {
        "length_penalty": float(draw(ALPHAS)),
        "length_penalty_form": int(draw([0, 1])),
        "coverage_penalty": float(draw([0.0, 0.25, 1.0, 3.0])),
        "repetition_penalty": float(draw([0.5, 1.0, 1.25, 3.0])),
    }
    return options, prefixes


@pytest.mark.parametrize("vocab_size", WIDE)
def test_all_options_together_leave_the_best(vocab_size):
    generator = np.random.default_rng(vocab_size)
    for trial in range(20):
        tables = random_tables(7, 5, vocab_size, seed=[vocab_size, trial])
        attention = random_attention(7, 5, vocab_size, seed=trial)
        caps = [2 + row % 4 for row in range(7)]
        options, prefixes = drawn_options(vocab_size, 7, generator)
        result = beam(
            tables,
            caps,
            2,
            attention,
            beam_size=WIDE[vocab_size],
            target_prefix=padded(prefixes),
            **options,
        )
        for row, cap in enumerate(caps):
            same_ranking(
                result,
                row,
                *exhaustive_search(
                    tables[row],
                    cap,
                    attention=attention[row],
                    target_prefix=prefixes[row],
                    **options,
                ),
            )


@pytest.mark.parametrize("early_stopping", [False, True])
def test_a_narrow_beam_equals_a_plain_one_under_all_options(early_stopping):
    generator = np.random.default_rng(early_stopping)
    lost = 0
    for trial in range(60):
        # Of the largest only the likeliest ids are ever looked at.
        vocab_size = int(generator.choice([4, 5, 7, 13, 31]))
        tables = random_tables(11, 7, vocab_size, seed=trial, scale=1.5)
        tables[generator.random(tables.shape) < 0.1] = -np.inf
        attention = random_attention(11, 7, vocab_size, seed=trial)
        caps = generator.integers(0, 8, 11).tolist()
        options, prefixes = drawn_options(vocab_size, 11, generator)
        options["beam_size"] = int(generator.integers(1, 6))
        wanted = int(generator.integers(1, options["beam_size"] + 1))
        result = beam(
            tables,
            caps,
            wanted,
            attention,
            early_stopping=early_stopping,
            target_prefix=padded(prefixes),
            **options,
        )
        for row, cap in enumerate(caps):
            early, late = (
                plain_beam(
                    tables[row],
                    cap,
                    num_hypotheses=wanted,
                    early_stopping=stopping,
                    attention=attention[row],
                    target_prefix=prefixes[row],
                    **options,
                )
                for stopping in (True, False)
            )
            lost += early != late
            hypotheses = early if early_stopping else late
            same_ranking(result, row, *hypotheses, tolerance=1e-4)
    # Stopping early makes a difference.
    assert lost > 5


@pytest.mark.parametrize("beam_size", [10, 50])
def test_a_beam_wider_than_the_vocabulary_finds_all_there_is(beam_size):
    tables = random_tables(20, 3, 6, seed=4)
    result = beam(tables, [3] * 20, beam_size, beam_size=beam_size)
    for row in range(20):
        finished, cut = exhaustive_search(tables[row], 3, length_penalty=0.6)
        if beam_size == 50:
            same_ranking(result, row, finished, cut)
            unused = slice(len(finished) + len(cut), None)
            assert np.isneginf(result.scores[row, unused]).all()
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
