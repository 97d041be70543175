"""Options that change what may come next, by hand and in the searches."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import (
    Constraints,
    penalize_repetition,
    repeated_ngrams,
)
from keras_transformer.decoding.constraints import NextIds
from tests.support.exhaustive_search import log_softmax, repeats
from tests.support.step_tables import (
    beam,
    found,
    greedy,
    path_table,
    random_tables,
)


def next_ids(pad_id=0, bos_id=1, eos_id=2, **constraints):
    constraints = Constraints(**constraints)
    return NextIds(constraints, 3, 1, pad_id, bos_id, eos_id)


@pytest.mark.parametrize(
    ("position", "min_length", "last"),
    [(0, 0, -1), (0, 1, -1), (0, 2, 9), (1, 2, -1), (3, 9, 9), (0, -4, -1)],
)
def test_eos_is_forbidden_while_its_length_would_be_too_small(
    position, min_length, last
):
    # The range is for Python numbers: a graph clips it.
    rules = next_ids(
        3, 8, 9, forbidden_ids=(4, 7), min_length=tf.constant(min_length)
    )
    assert rules.forbidden(position).numpy().tolist() == [[3, 8, 4, 7, last]]


def test_pad_and_bos_are_forbidden_but_bos_that_is_eos():
    assert next_ids().forbidden(0).numpy().tolist() == [[0, 1, -1]]
    assert next_ids(bos_id=2).forbidden(0).numpy().tolist() == [[0, -1]]


def seen(rules, position=4):
    """Which branches there are at a position."""
    built = []

    def branch(name):
        built.append(name)
        return tf.constant(name)

    found = rules.choose(
        position, lambda: branch("constrained"), lambda: branch("free")
    )
    return found.numpy().decode(), built


@pytest.mark.parametrize(
    "off",
    [
        {},
        {"forbidden_ids": (0, 1), "min_length": 5},
        {"no_repeat_ngram_size": 0, "repetition_penalty": 1},
        {
            "no_repeat_ngram_size": np.int32(0),
            "repetition_penalty": np.float32(1.0),
        },
    ],
)
def test_options_that_are_numbers_and_off_cost_nothing(off):
    """No branch is built for them, in a graph either."""
    assert seen(next_ids(**off)) == ("free", ["free"])
    graph = tf.Graph()
    with graph.as_default():
        rules = next_ids(**off)
        rules.choose(tf.constant(4), lambda: 1 / 0, lambda: tf.constant(0))
    assert "If" not in {operation.type for operation in graph.get_operations()}


def test_options_that_are_on_are_seen():
    for on in (
        {"no_repeat_ngram_size": 1},
        {"repetition_penalty": 1.5},
        {"repetition_penalty": 0.5},
    ):
        assert seen(next_ids(**on)) == ("constrained", ["constrained"])
    rules = next_ids(target_prefix=tf.constant([[5, 6]]))
    where = [seen(rules, position)[0] for position in (0, 1, 2)]
    assert where == ["constrained", "constrained", "free"]


@pytest.mark.parametrize(
    "constraints",
    [
        {"min_length": -1},
        {"no_repeat_ngram_size": 1.5},
        {"repetition_penalty": 0.0},
    ],
)
def test_numbers_out_of_range_are_refused(constraints):
    [(name, value)] = constraints.items()
    message = f"^{name} must be .* from .* to .*, got {name}={value}$"
    with pytest.raises(ValueError, match=message):
        next_ids(**constraints)


@pytest.mark.parametrize(
    ("size", "blocked"),
    [
        (-1, set()),
        (0, set()),
        (1, {7, 8, 9}),
        (2, {8, 9}),
        (3, {9}),
        (4, set()),
        (7, set()),
        (2**31 - 1, set()),
    ],
)
def test_ids_that_would_repeat_an_ngram_are_found(size, blocked):
    ids = tf.constant([[1, 8, 7, 9, 7, 8, 7]])
    # After 8 7 came 9; after 7 came 9 and 8; 8 7 9 was there, 7 8 7 was not.
    result = repeated_ngrams(ids, size).numpy()
    assert result.shape == (1, 7)
    assert set(result[0].tolist()) - {-1} == blocked


def test_an_ngram_may_overlap_itself():
    blocked = repeated_ngrams(tf.constant([[1, 7, 7], [1, 7, 8]]), 2).numpy()
    assert [set(row) - {-1} for row in blocked.tolist()] == [{7}, set()]


def test_the_first_bos_is_in_no_ngram():
    ids = tf.constant([[1, 7, 1], [1, 1, 7]])
    blocked = repeated_ngrams(ids, 2).numpy()
    assert (blocked == -1).all()
    blocked = repeated_ngrams(ids[:, :1], 1).numpy()
    assert (blocked == -1).all()


@pytest.mark.parametrize("length", [1, 2, 5, 11])
def test_repeated_ngrams_are_those_of_the_definition(length):
    generator = np.random.default_rng(length)
    ids = generator.integers(2, 5, size=(37, length)).astype("int32")
    ids[:, 0] = 1
    for size in range(length + 3):
        blocked = repeated_ngrams(tf.constant(ids), tf.constant(size)).numpy()
        for row in range(len(ids)):
            expected = {
                token_id
                for token_id in range(1, 6)
                if repeats(tuple(ids[row, 1:]), token_id, size)
            }
            assert set(blocked[row].tolist()) - {-1} == expected


# What was generated: 3, 5, 6 and 3 again.
LOGITS = np.array([[9, 8, -4, 6, 7, -1, 0, -np.inf]], "float32")
SEEN = np.array([[0, 3, 5, 6, 3, 7]], "int32")


@pytest.mark.parametrize(
    ("penalty", "expected"),
    [
        (1.0, [9, 8, -4, 6, 7, -1, 0]),
        (2.0, [9, 8, -4, 3, 7, -2, 0]),
        (0.5, [9, 8, -4, 12, 7, -0.5, 0]),
    ],
)
def test_logits_of_what_was_generated_are_divided_or_multiplied(
    penalty, expected
):
    result = penalize_repetition(tf.constant(LOGITS), SEEN, penalty).numpy()
    assert result.tolist() == [[*expected, -np.inf]]


def test_each_row_is_penalized_for_its_own_ids():
    logits = np.full((3, 5), 4.0, "float32")
    ids = np.array([[1, 2], [1, 3], [1, 1]], "int32")
    result = penalize_repetition(tf.constant(logits), ids, tf.constant(4.0))
    assert result.numpy().tolist() == [
        [4, 4, 1, 4, 4],
        [4, 4, 4, 1, 4],
        [4, 4, 4, 4, 4],
    ]


def test_bos_is_never_penalized():
    """Else the first id would get another probability from its place."""
    table = np.zeros((1, 5, 5), "float32")
    table[0, 1] = [1.0, 3.0, 0.5, 2.0, -1.0]
    expected = log_softmax(table[0, 1])[3]
    for penalty in (0.5, 4.0):
        result = beam([table], [1], min_length=2, repetition_penalty=penalty)
        assert found(result) == [(3,)]
        assert result.scores[0, 0] == pytest.approx(expected, abs=1e-6)


# Whatever came before, the order is 3, 4, 5, eos.
ALWAYS_3 = np.tile(
    np.array([-9, -9, 1, 4, 3, 2], "float32"), (7, 6, 1)
)  # fmt: skip


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, (3, 3, 3, 3, 3, 3, 3)),
        (1, (3, 4, 5, 2)),
        (2, (3, 3, 4, 3, 5, 3, 2)),
        (3, (3, 3, 3, 4, 3, 3, 5)),
        (6, (3, 3, 3, 3, 3, 3, 4)),
        (7, (3, 3, 3, 3, 3, 3, 3)),
        (8, (3, 3, 3, 3, 3, 3, 3)),
        (2**31 - 1, (3, 3, 3, 3, 3, 3, 3)),
    ],
)
def test_no_ngram_comes_twice(size, expected):
    options = {"no_repeat_ngram_size": size}
    result = greedy([ALWAYS_3], [7], **options)
    assert tuple(result.token_ids[0].tolist()) == expected
    result = beam([ALWAYS_3], [7], beam_size=1, **options)
    assert found(result) == [expected]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_output_holds_an_ngram_twice(size):
    """Steep tables, so that without the block they often do."""

    def repeating(ids):
        return any(
            repeats(ids[:place], ids[place], size) for place in range(len(ids))
        )

    tables = np.repeat(random_tables(30, 1, 7, seed=2, scale=3.0), 9, axis=1)
    tables[..., 2] -= 2.0
    for block in (0, size):
        options = {"no_repeat_ngram_size": block}
        result = beam(tables, [9] * 30, 4, **options)
        alone = greedy(tables, [9] * 30, **options)
        outputs = [each for row in range(30) for each in found(result, row)]
        outputs += [
            tuple(ids[:length].tolist())
            for ids, length in zip(alone.token_ids, alone.lengths, strict=True)
        ]
        share = np.mean([repeating(ids) for ids in outputs])
        assert share == 0 if block else share > 0.3


def test_a_block_may_leave_eos_alone_or_nothing():
    """With each id allowed once, three of them and then only eos is left."""
    options = {"no_repeat_ngram_size": 1}
    for search in (greedy, functools.partial(beam, beam_size=1)):
        result = search([ALWAYS_3, ALWAYS_3], [7, 3], **options)
        assert result.lengths.ravel().tolist() == [4, 3]
        assert result.finished.ravel().tolist() == [True, False]
        result = search(
            [ALWAYS_3, ALWAYS_3], [7, 3], forbidden_ids=(0, 1, 2), **options
        )
        assert result.lengths.ravel().tolist() == [0, 3]
        assert not result.finished.any()
        assert np.isneginf(result.scores.ravel()[0])
        assert np.isfinite(result.scores.ravel()[1])
        assert (result.token_ids[0] == 0).all()
    result = beam([ALWAYS_3], [7], 4, min_length=5, **options)
    assert np.isneginf(result.scores).all()
    assert result.token_ids.shape == (1, 4, 0)


def test_beams_at_a_dead_end_leave_their_place_to_others():
    """3 3 may not go on with 3; what ended before stays, unbeaten or not."""
    table = path_table(
        4, 5,
        (0, 1, {3: 0.9, 4: 0.1}),
        (None, 3, {3: 1.0}),
        (None, 4, {2: 1.0}),
    )  # fmt: skip
    result = beam([table], [4], 3, no_repeat_ngram_size=2)
    assert found(result) == [(4, 2)]
    assert result.lengths.tolist() == [[2, 0, 0]]


def repetition_table(first, second, eos):
    """Starts with 3; then the logits of 3, of 4 and of eos are those given."""
    table = np.full((2, 5, 5), -np.inf, "float32")
    table[0, 1, 3] = 0.0
    table[1, 3, 2:] = [eos, first, second]
    return table


@pytest.mark.parametrize(
    ("penalty", "first", "second", "expected"),
    [
        (1.0, 2.0, 1.5, 3),
        (2.0, 2.0, 1.5, 4),  # 1.0 against 1.5
        (1.25, 2.0, 1.5, 3),  # 1.6 against 1.5
        (2.0, -1.0, -1.5, 4),  # -2.0; a division would give -0.5
        (0.5, -2.0, -1.5, 3),  # -1.0
        (0.5, 1.0, 1.5, 3),  # 2.0
        (2.0, 0.0, -0.5, 3),
    ],
)
def test_a_repetition_penalty_changes_the_choice_but_not_the_greedy_score(
    penalty, first, second, expected
):
    table = repetition_table(first, second, -9.0)
    result = greedy([table], [2], repetition_penalty=penalty)
    assert result.token_ids.tolist() == [[3, expected]]
    own = log_softmax(table[0, 1])[3] + log_softmax(table[1, 3])[expected]
    assert result.scores[0] == pytest.approx(own, abs=1e-5)


@pytest.mark.parametrize("penalty", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_score_of_beam_search_is_of_the_penalized_logits(penalty, sign):
    table = repetition_table(sign * 1.0, sign * 1.5, sign * 0.75)
    result = beam(
        [table],
        [2],
        3,
        length_penalty=0.0,
        repetition_penalty=penalty,
    )
    logits = table[1, 3].astype("float64")
    logits[3] *= 1 / penalty if sign > 0 else penalty
    log_probs = log_softmax(logits)
    expected = {(3, each): log_probs[each] for each in (2, 3, 4)}
    ids = found(result)
    assert set(ids) == set(expected)
    assert ids[0] == (3, 2)
    np.testing.assert_allclose(
        result.scores[0], [expected[each] for each in ids], atol=1e-5
    )


def test_the_impossible_stays_impossible_however_repetition_counts():
    table = path_table(3, 5, (0, 1, {3: 1.0}), (1, 3, {2: 0.5, 4: 0.5}))
    for penalty in (0.01, 0.5, 100.0):
        result = beam([table], [3], 4, repetition_penalty=penalty)
        assert found(result) == [(3, 2)]
        assert not np.isnan(result.scores).any()
        one = greedy([table], [2], repetition_penalty=penalty)
        assert one.token_ids.tolist() == [[3, 2]]
        assert one.scores[0] == pytest.approx(np.log(0.5), abs=1e-6)
