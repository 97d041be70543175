"""Exports give the ids and scores of the Translator."""

import functools

import numpy as np
import pytest

from tests.support.exports import (
    assert_same_rows,
    generate,
    rows_of,
    widen,
)

RUNTIMES = ["onnx", "saved_model"]
EVERY = {
    "beam_size": 4,
    "num_hypotheses": 4,
    "length_penalty": 0.6,
    "max_length": -1,
    "min_length": 0,
}
QUESTIONS = [
    ("greedy", {}),
    ("greedy", {"max_length": 11, "min_length": 5}),
    ("greedy", {"max_length": 0}),
    ("beam", {}),
    ("beam", {"beam_size": 1, "length_penalty": 0.0}),
    ("beam", EVERY),
    ("beam", {**EVERY, "length_penalty": 0.0}),
    ("beam", {**EVERY, "length_penalty": -1.5, "beam_size": 5}),
    ("beam", {"beam_size": 3, "max_length": 7, "min_length": 6}),
    ("beam", {"beam_size": 2, "num_hypotheses": 2, "max_length": 1}),
]


@pytest.fixture(scope="module")
def expected(translator, source_ids):
    """Rows that the Translator gives for all sentences at once."""

    @functools.cache
    def ask(signature, options):
        return rows_of(
            generate(translator, signature, source_ids, dict(options))
        )

    return lambda signature, options: ask(signature, tuple(options.items()))


def test_the_model_has_something_to_say(expected):
    for signature in ("greedy", "beam"):
        rows = expected(signature, {})
        outputs = {tuple(ids) for [ids], _, _ in rows}
        assert len(outputs) >= 30
        assert len({len(ids) for ids in outputs}) >= 10
        ends = [finished for _, [finished], _ in rows]
        assert 30 <= sum(ends) < len(ends)
    greedy, beam = expected("greedy", {}), expected("beam", {})
    assert [row[0] for row in greedy] != [row[0] for row in beam]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("signature", "options"), QUESTIONS)
def test_exports_answer_as_the_translator(
    runtime, signature, options, runtimes, source_ids, expected
):
    found = runtimes[runtime](signature, source_ids, options)
    assert_same_rows(rows_of(found), expected(signature, options))


def test_the_export_without_text_answers_alike(runtimes, source_ids, expected):
    for signature, options in (("greedy", {}), ("beam", EVERY)):
        found = runtimes["of_ids"](signature, source_ids, options)
        assert_same_rows(rows_of(found), expected(signature, options))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", ["greedy", "beam"])
@pytest.mark.parametrize("size", [1, 7])
def test_neighbours_and_padding_change_nothing(
    runtime, signature, size, runtimes, source_ids, expected
):
    count = 13 if size == 1 else len(source_ids)
    order = np.random.default_rng(3).permutation(len(source_ids))[:count]
    options = EVERY if signature == "beam" else {}
    found = {}
    for start in range(0, len(order), size):
        chunk = order[start : start + size]
        batch = widen(source_ids[chunk], 20)
        if size == 1:  # As narrow as can be.
            batch = batch[:, : np.count_nonzero(batch)]
        rows = rows_of(runtimes[runtime](signature, batch, options))
        for i, row in zip(chunk, rows, strict=True):
            found[i] = row
    rows = expected(signature, options)
    for i in order:
        assert_same_rows([found[i]], [rows[i]])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_beam_of_one_without_penalty_equals_greedy(
    runtime, runtimes, source_ids
):
    options = {"beam_size": 1, "length_penalty": 0.0}
    beam = runtimes[runtime]("beam", source_ids, options)
    greedy = runtimes[runtime]("greedy", source_ids, {})
    assert_same_rows(rows_of(beam), rows_of(greedy))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_defaults_are_those_of_the_contract(runtime, runtimes, source_ids):
    for signature, options in (
        ("greedy", {"max_length": -1, "min_length": 0}),
        ("beam", {**EVERY, "num_hypotheses": 1}),
    ):
        left_out = runtimes[runtime](signature, source_ids, {})
        given = runtimes[runtime](signature, source_ids, options)
        for name, value in left_out.items():
            np.testing.assert_array_equal(value, given[name])


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("signature", "outside", "inside"),
    [
        ("greedy", {"max_length": -7}, {"max_length": -1}),
        ("greedy", {"min_length": -7}, {"min_length": 0}),
        ("beam", {"beam_size": 0}, {"beam_size": 1}),
        ("beam", {"beam_size": -9}, {"beam_size": 1}),
        ("beam", {"num_hypotheses": 0}, {"num_hypotheses": 1}),
        ("beam", {"num_hypotheses": 99}, {"num_hypotheses": 4}),
        ("beam", {"length_penalty": 99.0}, {"length_penalty": 10.0}),
        ("beam", {"length_penalty": -1e30}, {"length_penalty": -10.0}),
        (
            "beam",
            {"min_length": 99, "max_length": 3},
            {"min_length": 3, "max_length": 3},
        ),
    ],
)
def test_options_outside_their_range_count_as_its_end(
    runtime, signature, outside, inside, runtimes, source_ids, translator
):
    rows = source_ids[[0, 3, 30, 31]]
    expected = rows_of(generate(translator, signature, rows, inside))
    here = rows_of(generate(translator, signature, rows, outside))
    if "min_length" not in outside or outside["min_length"] < 0:
        assert_same_rows(here, expected)
    found = rows_of(runtimes[runtime](signature, rows, outside))
    assert_same_rows(found, here)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", ["greedy", "beam"])
def test_ids_outside_the_vocabulary_count_as_unknown(
    runtime, signature, runtimes, source_ids, translator
):
    unknown = source_ids[:5, :7].copy()
    unknown[:, 1] = translator.transformer.unk_id
    expected = rows_of(generate(translator, signature, unknown, {}))
    for outside in (307, 10**9, 2**31 - 1, -1, -(2**31)):
        rows = unknown.copy()
        rows[:, 1] = outside
        found = rows_of(runtimes[runtime](signature, rows, {}))
        assert_same_rows(found, expected)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", ["greedy", "beam"])
@pytest.mark.parametrize(
    ("rows", "lengths"),
    [
        (np.zeros((0, 5)), []),
        ([[2]], [0]),
        ([[0, 0, 0]], [0]),
        ([[2, 0], [0, 0], [2, 2]], [0, 0, 0]),
        ([[269]], None),
        ([[269, 2], [2, 0], [0, 269]], None),
        ([[3, 3, 2]], None),
    ],
)
def test_odd_batches_are_answered_as_the_translator_does(
    runtime, signature, rows, lengths, runtimes, translator
):
    rows = np.asarray(rows, "int32")
    options = EVERY if signature == "beam" else {}
    expected = generate(translator, signature, rows, options)
    found = runtimes[runtime](signature, rows, options)
    for name, value in found.items():
        assert value.shape == expected[name].shape
    assert_same_rows(rows_of(found), rows_of(expected))
    if lengths is not None:
        best = [np.max(row) for row in found["lengths"]]
        assert best == lengths
        assert found["token_ids"].shape[-1] == 0
        assert not found["finished"].any()


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", ["greedy", "beam"])
def test_five_calls_are_bitwise_equal(
    runtime, signature, runtimes, source_ids, translator
):
    # Dropout was on in training, and would show here.
    assert translator.transformer.get_config()["dropout"] == 0.5
    rows = source_ids[:9]
    first, *others = [runtimes[runtime](signature, rows, {}) for _ in range(5)]
    assert first["lengths"].min() > 1
    for other in others:
        for name, value in first.items():
            assert value.tobytes() == other[name].tobytes()
