"""Exports give the ids and scores of the Translator."""

import functools

import numpy as np
import pytest

from keras_transformer.decoding import SIGNATURES
from keras_transformer.decoding.options import RANGES
from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from tests.support.decoding_runs import seeds
from tests.support.exports import (
    assert_same_floats,
    assert_same_rows,
    generate,
    rows_of,
    take,
    widen,
)

RUNTIMES = ["onnx", "saved_model"]
SEARCHES = ["greedy", "beam", "sample"]
TEACHER_FORCED = ["score", "align"]
DEFAULTS = {
    signature: {
        argument.name: argument.default
        for argument in SIGNATURES[signature].inputs
        if argument.default is not None
    }
    for signature in SEARCHES
}
EVERY = {**DEFAULTS["beam"], "num_hypotheses": 4}
# For each of the 37 rows a forced start of 0 to 3 ids.
PREFIXES = tuple(
    tuple([292 - i % 31, 261 + i % 29, 3][: i % 4] + [0] * (3 - i % 4))
    for i in range(37)
)
QUESTIONS = [
    ("greedy", {}),
    ("greedy", {"max_length": 11, "min_length": 5}),
    ("greedy", {"max_length": 0}),
    ("greedy", {"target_prefix": PREFIXES, "repetition_penalty": 1.5}),
    ("greedy", {"no_repeat_ngram_size": 1, "forbidden_ids": (269, 271, 2)}),
    ("beam", {}),
    ("beam", {"beam_size": 1, "length_penalty": 0.0}),
    ("beam", EVERY),
    ("beam", {**EVERY, "length_penalty": 0.0}),
    ("beam", {**EVERY, "length_penalty": -1.5, "beam_size": 5}),
    ("beam", {"beam_size": 3, "max_length": 7, "min_length": 6}),
    ("beam", {"beam_size": 2, "num_hypotheses": 2, "max_length": 1}),
    ("beam", {**EVERY, "target_prefix": PREFIXES, "coverage_penalty": 0.3}),
    ("beam", {**EVERY, "early_stopping": 1, "length_penalty_form": 1}),
    ("beam", {"repetition_penalty": 0.5, "no_repeat_ngram_size": 3}),
    # More candidates than there are ids.
    ("beam", {**EVERY, "beam_size": 160, "max_length": 3}),
    ("sample", {}),
    ("sample", {"temperature": 0.0}),
    ("sample", {"temperature": 3.0, "top_k": 7, "top_p": 0.6}),
    ("sample", {"top_p": 0.9, "target_prefix": PREFIXES, "min_length": 8}),
    ("sample", {"no_repeat_ngram_size": 2, "repetition_penalty": 1.2}),
]


def outside_the_ranges():
    """Lists signature, option, values beyond an end of it, and that end."""
    for signature in SEARCHES:
        for name in sorted(RANGES.keys() & DEFAULTS[signature]):
            smallest, largest = RANGES[name]
            if isinstance(smallest, int):
                yield signature, name, (smallest - 1, -(2**31)), smallest
            else:
                yield signature, name, (smallest - 0.5, -np.inf), smallest
            if largest == 1:
                yield signature, name, (2, 2**31 - 1), largest
            elif largest < 2**31 - 1:
                yield signature, name, (largest * 1.5, np.inf), largest


@pytest.fixture(scope="module")
def expected(translator, source_ids, asked):
    """Rows that the Translator gives for all sentences at once."""

    @functools.cache
    def ask(signature, options):
        inputs = {**asked[signature], **dict(options)}
        return rows_of(generate(translator, signature, source_ids, inputs))

    return lambda signature, options: ask(signature, tuple(options.items()))


def test_the_model_has_something_to_say(expected):
    for signature in SEARCHES:
        rows = expected(signature, {})
        outputs = {tuple(ids) for [ids], _, _ in rows}
        assert len(outputs) >= 30
        assert len({len(ids) for ids in outputs}) >= 10
        ends = [finished for _, [finished], _ in rows]
        assert 30 <= sum(ends) < len(ends)
    greedy, beam, sample = (
        [row[0] for row in expected(signature, {})] for signature in SEARCHES
    )
    assert greedy != beam and greedy != sample


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("signature", "options"), QUESTIONS)
def test_exports_answer_as_the_translator(
    runtime, signature, options, runtimes, source_ids, asked, expected
):
    inputs = {**asked[signature], **options}
    found = runtimes[runtime](signature, source_ids, inputs)
    assert_same_rows(rows_of(found), expected(signature, options))


@pytest.mark.parametrize("runtime", ["onnx", "saved_model", "of_ids"])
@pytest.mark.parametrize("signature", TEACHER_FORCED)
def test_exports_score_and_align_as_the_translator(
    runtime, signature, runtimes, source_ids, asked, translator
):
    found = runtimes[runtime](signature, source_ids, asked[signature])
    assert_same_floats(
        found, generate(translator, signature, source_ids, asked[signature])
    )
    values = found[SIGNATURES[signature].outputs[0].name]
    real = asked[signature]["target_ids"] != 0
    assert np.count_nonzero(values.reshape(*real.shape, -1).any(2)) == (
        real.sum()
    )


def test_the_export_without_text_answers_alike(
    runtimes, source_ids, asked, expected
):
    for signature, options in (("greedy", {}), ("beam", EVERY), ("sample", {})):
        inputs = {**asked[signature], **options}
        found = runtimes["of_ids"](signature, source_ids, inputs)
        assert_same_rows(rows_of(found), expected(signature, options))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
@pytest.mark.parametrize("size", [1, 7])
def test_neighbours_and_padding_change_nothing(
    runtime, signature, size, runtimes, source_ids, asked, expected
):
    count = 13 if size == 1 else len(source_ids)
    order = np.random.default_rng(3).permutation(len(source_ids))[:count]
    options = EVERY if signature == "beam" else {}
    options = {**options, "target_prefix": PREFIXES}
    of_rows = {**asked[signature], "target_prefix": np.array(PREFIXES)}
    found = {}
    for start in range(0, len(order), size):
        chunk = order[start : start + size]
        batch = widen(source_ids[chunk], 20)
        if size == 1:  # As narrow as can be.
            batch = batch[:, : np.count_nonzero(batch)]
        inputs = {**options, **take(of_rows, chunk)}
        rows = rows_of(runtimes[runtime](signature, batch, inputs))
        for i, row in zip(chunk, rows, strict=True):
            found[i] = row
    rows = expected(signature, options)
    for i in order:
        assert_same_rows([found[i]], [rows[i]])


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", TEACHER_FORCED)
@pytest.mark.parametrize("size", [1, 7])
def test_neighbours_and_padding_change_no_score_and_no_attention(
    runtime, signature, size, runtimes, source_ids, asked, translator
):
    everything = generate(translator, signature, source_ids, asked[signature])
    order = np.random.default_rng(4).permutation(len(source_ids))[:21]
    for start in range(0, len(order), size):
        chunk = order[start : start + size]
        inputs = take(asked[signature], chunk)
        found = runtimes[runtime](
            signature,
            widen(source_ids[chunk], 5),
            {"target_ids": widen(inputs["target_ids"], 3)},
        )
        assert_same_floats(found, take(everything, chunk))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_beam_of_one_without_penalty_equals_greedy(
    runtime, runtimes, source_ids
):
    options = {"beam_size": 1, "length_penalty": 0.0}
    beam = runtimes[runtime]("beam", source_ids, options)
    greedy = runtimes[runtime]("greedy", source_ids, {})
    assert_same_rows(rows_of(beam), rows_of(greedy))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_cold_sample_equals_greedy(runtime, runtimes, source_ids, asked):
    inputs = {**asked["sample"], "temperature": 0.0}
    sample = runtimes[runtime]("sample", source_ids, inputs)
    greedy = runtimes[runtime]("greedy", source_ids, {})
    assert_same_rows(rows_of(sample), rows_of(greedy))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_seed_gives_its_sample_in_any_call_and_row(
    runtime, runtimes, source_ids
):
    rows = source_ids[[5, 5, 5, 9, 5]]
    inputs = {
        "seed": [[4, 1], [4, 2], [4, 1], [4, 1], [5, 1]],
        "temperature": 9.0,
    }
    first, *others = [
        runtimes[runtime]("sample", rows, inputs) for _ in range(3)
    ]
    for other in others:
        for name, value in first.items():
            assert value.tobytes() == other[name].tobytes()
    ids = [tuple(slot) for [slot], _, _ in rows_of(first)]
    assert ids[0] == ids[2]
    assert len({ids[0], ids[1], ids[4]}) == 3


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
def test_defaults_are_those_of_the_contract(
    runtime, signature, runtimes, source_ids, asked
):
    given = {**asked[signature], **DEFAULTS[signature]}
    given = runtimes[runtime](signature, source_ids, given)
    left_out = runtimes[runtime](signature, source_ids, asked[signature])
    for name, value in left_out.items():
        np.testing.assert_array_equal(value, given[name])


@pytest.mark.parametrize(
    ("signature", "name", "beyond", "end"), list(outside_the_ranges())
)
def test_options_outside_their_range_count_as_its_end(
    signature, name, beyond, end, runtimes, source_ids, translator
):
    rows = source_ids[[0, 3, 30, 31]]
    inputs = {"seed": seeds(4)} if signature == "sample" else {}
    if name != "max_length":
        inputs["max_length"] = 9
    expected = rows_of(
        generate(translator, signature, rows, {**inputs, name: end})
    )
    for value in beyond:
        options = {**inputs, name: value}
        here = rows_of(generate(translator, signature, rows, options))
        assert_same_rows(here, expected)
        for runtime in RUNTIMES:
            found = rows_of(runtimes[runtime](signature, rows, options))
            assert_same_rows(found, expected)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_more_hypotheses_than_beams_are_given(
    runtime, runtimes, source_ids, translator
):
    rows = source_ids[[0, 3, 30, 31]]
    for beam_size in (1, 3):
        options = {"beam_size": beam_size, "num_hypotheses": beam_size}
        expected = rows_of(generate(translator, "beam", rows, options))
        for count in (99, 2**31 - 1):
            options["num_hypotheses"] = count
            found = runtimes[runtime]("beam", rows, options)
            assert_same_rows(rows_of(found), expected)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
def test_a_smallest_length_above_the_largest_keeps_eos_away(
    runtime, signature, runtimes, source_ids, translator
):
    rows = source_ids[[0, 3, 27, 28]]  # The last two are blank.
    inputs = {"seed": seeds(4)} if signature == "sample" else {}
    for smallest in (4, 99, 2**31 - 1):
        options = {**inputs, "min_length": smallest, "max_length": 3}
        here = generate(translator, signature, rows, options)
        found = runtimes[runtime](signature, rows, options)
        assert_same_rows(rows_of(found), rows_of(here))
        assert not found["finished"].any() and 2 not in found["token_ids"]
        assert found["lengths"].ravel().tolist() == [3, 3, 0, 0]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
def test_a_huge_largest_length_costs_nothing_where_eos_comes(
    runtime, signature, runtimes, source_ids, asked, expected
):
    ends = [
        i for i, (_, ends, _) in enumerate(expected(signature, {})) if all(ends)
    ][:7]
    options = {"max_length": 2**31 - 1}
    if signature == "beam":
        options["early_stopping"] = 1
    found = runtimes[runtime](
        signature,
        source_ids[ends],
        {**take(asked[signature], ends), **options},
    )
    assert found["finished"].all()
    if signature != "beam":
        rows = expected(signature, {})
        assert_same_rows(rows_of(found), [rows[i] for i in ends])


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
def test_source_ids_outside_the_vocabulary_count_as_unknown(
    runtime, signature, runtimes, source_ids, translator
):
    inputs = {"seed": seeds(5)} if signature == "sample" else {}
    unknown = source_ids[:5, :7].copy()
    unknown[:, 1] = translator.transformer.unk_id
    expected = rows_of(generate(translator, signature, unknown, inputs))
    for outside in (307, 10**9, 2**31 - 1, -1, -(2**31)):
        rows = unknown.copy()
        rows[:, 1] = outside
        found = rows_of(runtimes[runtime](signature, rows, inputs))
        assert_same_rows(found, expected)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", TEACHER_FORCED)
def test_target_ids_that_are_never_generated_count_as_unknown(
    runtime, signature, runtimes, source_ids, translator
):
    """Beyond the tokenizer's 293 ids, negative ones, and bos."""
    rows = source_ids[:5]
    unknown = source_ids[1:6, :7].copy()
    unknown[:, 1] = translator.transformer.unk_id
    expected = generate(translator, signature, rows, {"target_ids": unknown})
    known = unknown.copy()
    known[:, 1] = 292
    other = generate(translator, signature, rows, {"target_ids": known})
    for name, value in other.items():
        assert not np.allclose(value, expected[name], atol=1e-2)
    for outside in (293, 306, 307, 2**31 - 1, -1, -(2**31), 1):
        target_ids = unknown.copy()
        target_ids[:, 1] = outside
        inputs = {"target_ids": target_ids}
        found = runtimes[runtime](signature, rows, inputs)
        assert_same_floats(found, expected)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", TEACHER_FORCED)
def test_padding_amid_a_target_has_no_score_and_no_attention(
    runtime, signature, runtimes, source_ids, translator
):
    inputs = {"target_ids": source_ids[1:6, :7].copy()}
    inputs["target_ids"][:, 1] = 0
    found = runtimes[runtime](signature, source_ids[:5], inputs)
    assert_same_floats(
        found, generate(translator, signature, source_ids[:5], inputs)
    )
    values = found[SIGNATURES[signature].outputs[0].name]
    assert not values[:, 1].any() and values[:, 0].any() and values[:, 2].any()


@pytest.mark.parametrize("signature", SEARCHES)
@pytest.mark.parametrize(
    ("odd", "mended"),
    [
        # Unknown: what the tokenizer or the model does not have, and bos.
        ([[270, 293, 271]], [[270, 3, 271]]),
        ([[307, 2**31 - 1, 271]], [[3, 3, 271]]),
        ([[-1, -(2**31), 271]], [[3, 3, 271]]),
        ([[1, 270, 1]], [[3, 270, 3]]),
        # Padding ends a prefix.
        ([[270, 0, 271]], [[270]]),
        ([[0, 270, 271]], [[]]),
        # After an eos there is nothing.
        ([[270, 2, 271]], [[270, 2]]),
        # One row serves all.
        ([[270, 271]], [[270, 271]] * 4),
        ([[]] * 4, [[]]),
    ],
)
def test_an_odd_prefix_is_mended(
    signature, odd, mended, runtimes, source_ids, translator
):
    rows = source_ids[[0, 3, 27, 12]]
    inputs = {"max_length": 8}
    if signature == "sample":
        inputs["seed"] = seeds(4)
    expected = generate(
        translator, signature, rows, {**inputs, "target_prefix": mended}
    )
    for runtime in RUNTIMES:
        options = {**inputs, "target_prefix": odd}
        found = rows_of(runtimes[runtime](signature, rows, options))
        assert_same_rows(found, rows_of(expected))
        # The third source is blank, and generates nothing.
        starts = [ids[: len(mended[0])] for [ids], _, _ in found]
        if mended != [[]]:
            assert starts == [mended[0], mended[0], [], mended[0]]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
def test_forbidden_ids_outside_the_vocabulary_forbid_nothing(
    runtime, signature, runtimes, source_ids, translator
):
    rows = source_ids[:5]
    inputs = {"seed": seeds(5)} if signature == "sample" else {}
    for inside in ([], [271, 275, 280]):
        options = {**inputs, "forbidden_ids": inside}
        expected = generate(translator, signature, rows, options)
        odd = [307, -1, 2**31 - 1, *inside, -(2**31), *inside, 0, 1]
        options["forbidden_ids"] = odd
        found = runtimes[runtime](signature, rows, options)
        assert_same_rows(rows_of(found), rows_of(expected))
        assert not np.isin(found["token_ids"], inside).any()


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
def test_where_all_ids_are_forbidden_there_is_no_hypothesis(
    runtime, signature, runtimes, source_ids
):
    options = {"seed": seeds(5)} if signature == "sample" else {}
    options["forbidden_ids"] = range(307)
    found = runtimes[runtime](signature, source_ids[:5], options)
    assert found["token_ids"].shape[-1] == 0
    assert not found["lengths"].any() and not found["finished"].any()
    assert np.isneginf(found["scores"]).all()


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", SEARCHES)
@pytest.mark.parametrize(
    ("rows", "lengths"),
    [
        (np.zeros((0, 5)), []),
        (np.zeros((0, 0)), []),
        (np.zeros((3, 0)), [0, 0, 0]),
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
    options = {
        "greedy": {},
        "beam": EVERY,
        "sample": {"seed": seeds(len(rows))},
    }[signature]
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
@pytest.mark.parametrize("signature", TEACHER_FORCED)
@pytest.mark.parametrize(
    ("rows", "target_ids"),
    [
        (np.zeros((0, 5)), np.zeros((0, 3))),
        (np.zeros((0, 0)), np.zeros((0, 0))),
        (np.zeros((3, 0)), [[270, 2]] * 3),
        ([[269, 2]] * 3, np.zeros((3, 0))),
        ([[2]], [[270, 2]]),
        ([[0, 0, 0]], [[270, 2]]),
        ([[2, 0], [0, 0], [269, 2]], [[0, 0, 0], [270, 2, 0], [2, 0, 0]]),
        ([[269]], [[270]]),
        ([[3, 3, 2]], [[3, 3, 2]]),
    ],
)
def test_odd_batches_are_scored_and_aligned_as_the_translator_does(
    runtime, signature, rows, target_ids, runtimes, translator
):
    inputs = {"target_ids": target_ids}
    expected = generate(translator, signature, rows, inputs)
    found = runtimes[runtime](signature, rows, inputs)
    for name, value in found.items():
        assert value.shape == expected[name].shape
        assert np.isfinite(value).all()
    assert_same_floats(found, expected)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("signature", TOKEN_SIGNATURES)
def test_five_calls_are_bitwise_equal(
    runtime, signature, runtimes, source_ids, asked, translator
):
    # Dropout was on in training, and would show here.
    assert translator.transformer.get_config()["dropout"] == 0.5
    inputs = take(asked[signature], slice(9))
    rows = source_ids[:9]
    first, *others = [
        runtimes[runtime](signature, rows, inputs) for _ in range(5)
    ]
    assert all(np.any(value) for value in first.values())
    for other in others:
        for name, value in first.items():
            assert value.tobytes() == other[name].tobytes()
