"""The coverage penalty in beam search."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import Constraints, SearchState, beam_search
from tests.support.exhaustive_search import log_probability, ranked
from tests.support.step_tables import (
    beam,
    found,
    path_table,
    random_attention,
    random_tables,
    table_step,
)


def two_translations():
    """3 eos is likelier, 4 eos attends to more of the source.

    Returns:
        tables and attention of one row: two heads, three source positions of
        which the last is padding.
    """
    table = path_table(
        2, 5, (0, 1, {3: 0.6, 4: 0.4}), (1, 3, {2: 1.0}), (1, 4, {2: 1.0})
    )
    attention = np.zeros((2, 5, 2, 3), "float32")
    attention[0, 1] = [[0.5, 0.5, 0.0], [0.7, 0.3, 0.0]]
    attention[1, 3] = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0]]
    attention[1, 4] = [[0.4, 0.6, 0.0], [0.3, 0.7, 0.0]]
    return table[None], attention[None]


# The mean of the heads at bos, and after 3 and 4 each.
COVERED_BY_3 = np.log(0.4 + 0.05)
COVERED_BY_4 = np.log(0.6 + 0.35)


@pytest.mark.parametrize(
    ("beta", "winner"), [(0.0, 3), (0.4, 3), (0.6, 4), (2.0, 4)]
)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_coverage_decides_between_likely_and_complete(alpha, beta, winner):
    """The 0.41 that 3 is ahead are 0.75 of coverage behind, times beta."""
    tables, attention = two_translations()
    result = beam(
        tables,
        [2],
        2,
        attention,
        length_penalty=alpha,
        coverage_penalty=beta,
    )
    over = (7 / 6) ** alpha
    expected = {
        (3, 2): np.log(0.6) / over + beta * COVERED_BY_3,
        (4, 2): np.log(0.4) / over + beta * COVERED_BY_4,
    }
    if alpha == 0.0:
        assert found(result)[0] == (winner, 2)
    assert found(result) == sorted(expected, key=expected.get, reverse=True)
    np.testing.assert_allclose(
        result.scores[0], sorted(expected.values(), reverse=True), atol=1e-6
    )


def test_coverage_counts_in_those_that_are_cut_too():
    tables, attention = two_translations()
    result = beam(
        tables, [1], 2, attention, length_penalty=0.0, coverage_penalty=2.0
    )
    # Both have seen the attention at bos alone.
    missed = 2 * np.log(0.6 * 0.4)
    assert found(result) == [(3,), (4,)]
    assert not result.finished.any()
    np.testing.assert_allclose(
        result.scores[0], np.log([0.6, 0.4]) + missed, atol=1e-6
    )
    result = beam(
        tables,
        [2],
        2,
        attention,
        length_penalty=0.0,
        coverage_penalty=2.0,
        min_length=9,
        forbidden_ids=(0, 1),
    )
    assert np.isneginf(result.scores).all()


def test_coverage_ranks_those_that_are_cut_but_not_who_survives():
    """Alive hypotheses compete by log-probability alone."""
    tables, attention = two_translations()
    tables[0, 1, 3:, 2:] = np.log([[1e-9, 0.5, 0.5], [1e-9, 0.5, 0.5]])
    options = {"length_penalty": 0.0, "coverage_penalty": 3.0, "min_length": 3}
    wide = beam(tables, [2], 4, attention, beam_size=4, **options)
    assert found(wide) == [(4, 3), (4, 4), (3, 3), (3, 4)]
    narrow = beam(tables, [2], 1, attention, beam_size=1, **options)
    assert found(narrow) == [(3, 3)]


def test_coverage_follows_its_hypothesis_and_its_row():
    """Rows that are done early, and beams that swap, keep their own."""
    tables = random_tables(13, 13, 9, seed=14, scale=1.0)
    attention = random_attention(13, 13, 9, seed=14)
    # Each row ends at another length, and some wait for the next to leave.
    caps = [7, 1, 12, 4, 9, 2, 13, 6, 3, 11, 8, 5, 10]
    options = {"length_penalty": 0.6, "coverage_penalty": 1.5}
    result = beam(tables, caps, 3, attention, beam_size=3, **options)
    for row in range(13):
        for rank, ids in enumerate(found(result, row)):
            pair = (ids, log_probability(tables[row], ids))
            [expected] = ranked([pair], attention[row], **options)
            assert result.scores[row, rank] == pytest.approx(
                expected.score, abs=1e-4
            )
    assert len(set(result.lengths.ravel().tolist())) > 4


@pytest.mark.parametrize("beta", [0.5, np.float32(0.5)])
def test_coverage_needs_attention(beta):
    state = SearchState(sentence=tf.constant(random_tables(1, 3, 6, seed=15)))
    with pytest.raises(
        ValueError, match=r"coverage_penalty=.*0\.5.* and no attention"
    ):
        beam_search(table_step, state, [3], coverage_penalty=beta)
    for off in (0, 0.0, np.float32(0.0)):
        beam_search(
            table_step,
            state,
            [3],
            coverage_penalty=off,
            constraints=Constraints(no_repeat_ngram_size=2),
        )
