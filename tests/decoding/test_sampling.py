"""Sampling whole sentences: against plain Python, and row by row."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import (
    SearchState,
    complete_options,
    greedy_search,
    loop,
    sample,
)
from tests.support.decoding_runs import decode, kept_ids, random_sources
from tests.support.sampling import (
    assert_distributed,
    by_id,
    distribution,
    generated,
    history_tables,
    logits_after,
    numpy_sample,
    sample_tables,
    start,
    step,
)
from tests.support.step_tables import as_keywords

NUM_ROWS = 61
CAPS = [1 + row % 9 for row in range(NUM_ROWS)]


@pytest.fixture(scope="module")
def tables():
    return history_tables(NUM_ROWS)


def seeds_of_lines(first, count):
    """As the Translator makes them: of the call, and of the line."""
    return [(first, line) for line in range(count)]


def assert_equal(one, other):
    for first, second in zip(one, other, strict=True):
        first, second = np.asarray(first), np.asarray(second)
        if first.dtype == np.float32:
            np.testing.assert_allclose(first, second, rtol=1e-5)
        else:
            np.testing.assert_array_equal(first, second)


def padded(prefixes):
    array = np.zeros((len(prefixes), max(map(len, prefixes))), "int32")
    for row, ids in zip(array, prefixes, strict=True):
        row[: len(ids)] = ids
    return array


FIVE_PREFIXES = [(), (5,), (6, 6, 6), (4, 2), (3, 9)]
OPTIONS = {
    "none": {},
    "cold": {"temperature": 0.4},
    "hot": {"temperature": 2.5, "top_k": 4},
    "top_k": {"top_k": 3},
    "top_p": {"top_p": 0.61},
    "all three": {"temperature": 1.3, "top_k": 6, "top_p": 0.83},
    "min_length": {"min_length": 5},
    "forbidden_ids": {"forbidden_ids": (0, 1, 7, 4, 99)},
    "unigrams": {"no_repeat_ngram_size": 1},
    "bigrams": {"no_repeat_ngram_size": 2, "top_k": 2},
    "trigrams": {"no_repeat_ngram_size": 3, "temperature": 0.1},
    "penalty": {"repetition_penalty": 3.0},
    "reward": {"repetition_penalty": 0.3},
    "prefix": {
        "target_prefix": padded(
            [FIVE_PREFIXES[row % 5] for row in range(NUM_ROWS)]
        )
    },
    "everything": {
        "temperature": 0.8,
        "top_k": 7,
        "top_p": 0.9,
        "min_length": 3,
        "forbidden_ids": (0, 1, 5),
        "no_repeat_ngram_size": 2,
        "repetition_penalty": 1.4,
        "target_prefix": padded([(8, 5, 8), (6,)] * 30 + [()]),
    },
}


@pytest.mark.parametrize("name", OPTIONS)
def test_sentences_are_those_of_plain_python(tables, name):
    options = OPTIONS[name]
    seeds = seeds_of_lines(17, NUM_ROWS)
    result = sample_tables(tables, CAPS, seeds, **options)
    found = generated(result)
    others = dict(options)
    prefixes = others.pop("target_prefix", [()] * NUM_ROWS)
    for row, seed in enumerate(seeds):
        ids, score, finished = numpy_sample(
            logits_after(tables[row]),
            seed,
            CAPS[row],
            target_prefix=[each for each in prefixes[row] if each],
            **others,
        )
        assert found[row] == ids
        assert result.scores[row] == pytest.approx(score, abs=1e-4)
        assert result.finished[row] == finished
        assert (result.token_ids[row, len(ids) :] == 0).all()
    assert len({tuple(ids) for ids in found}) > NUM_ROWS / 3


@pytest.mark.parametrize("name", ["none", "everything"])
def test_eager_sampling_equals_that_of_the_graph(tables, name):
    seeds = seeds_of_lines(17, NUM_ROWS)
    options = as_keywords(OPTIONS[name])
    eager = sample(step, start(tables), CAPS, seeds, **options)
    assert_equal(eager, sample_tables(tables, CAPS, seeds, **OPTIONS[name]))


def test_each_option_changes_what_is_drawn(tables):
    """Or the tests above would show nothing."""
    seeds = seeds_of_lines(17, NUM_ROWS)
    plain = generated(sample_tables(tables, CAPS, seeds))
    for name, options in OPTIONS.items():
        found = generated(sample_tables(tables, CAPS, seeds, **options))
        assert (found == plain) == (name == "none"), name
    ends = [ids[-1:] == [2] for ids in plain]
    assert 0.2 < np.mean(ends) < 0.8


@pytest.mark.parametrize("temperature", [0.0, 1e-5, 9e-5])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_length": 4},
        {"forbidden_ids": (0, 1, 3)},
        {"no_repeat_ngram_size": 2},
        {"repetition_penalty": 2.0},
        {"target_prefix": [[5, 6]]},
        {"no_repeat_ngram_size": 1, "min_length": 20, "target_prefix": [[3]]},
    ],
)
def test_temperature_0_is_greedy_search(temperature, options):
    tables = np.round(history_tables(NUM_ROWS))  # Some ids tie.
    caps = [9] * NUM_ROWS
    seeds = seeds_of_lines(3, NUM_ROWS)
    expected = greedy_search(step, start(tables), caps, **as_keywords(options))
    for others in ({}, {"top_k": 5, "top_p": 0.7}):
        found = sample_tables(
            tables, caps, seeds, temperature=temperature, **others, **options
        )
        assert_equal(found, expected)
    found = sample_tables(tables, caps, seeds, top_k=1, **options)
    assert_equal(found, expected)


def test_equal_seeds_give_equal_sentences_and_others_others():
    tables = np.tile(history_tables(1, scale=0.1), (200, 1, 1))
    tables[..., 2] -= 30.0
    caps = [9] * 200
    firsts = [0, 1, -1, 23158, 23159, -(2**31), 2**31 - 1, 42, 43, -23159]
    seeds = [(first, i) for first in firsts for i in range(20)]
    result = sample_tables(tables, caps, seeds)
    assert len({tuple(ids) for ids in generated(result)}) == 200
    assert_equal(sample_tables(tables, caps, seeds), result)
    swapped = [(second, first) for first, second in seeds]
    other = sample_tables(tables, caps, swapped)
    for seed, *pair in zip(
        seeds, generated(result), generated(other), strict=True
    ):
        assert (pair[0] == pair[1]) == (seed[0] == seed[1])
    same = sample_tables(tables, caps, [(5, -9)] * 200)
    assert len({tuple(ids) for ids in generated(same)}) == 1


def arrangements(count):
    """Orders of rows that batches may have."""
    everything = np.arange(count)
    yield everything[::-1]
    yield np.random.default_rng(0).permutation(count)
    yield np.repeat(everything, 2)
    yield everything[count // 3 : count // 2]
    for row in (0, 1, count // 2, count - 1):
        yield everything[[row]]
        # Among neighbours that are all done after the first step, or never.
        yield np.array([*everything[::9], row])
        yield np.array([row, *everything[8::9]])


@pytest.mark.parametrize("name", ["none", "all three", "everything"])
def test_a_row_depends_neither_on_its_batch_nor_on_its_place(tables, name):
    options = dict(OPTIONS[name])
    prefixes = options.pop("target_prefix", np.zeros((NUM_ROWS, 0), int))
    seeds = np.array(seeds_of_lines(4, NUM_ROWS))
    caps = np.array(CAPS)

    def run(order):
        return sample_tables(
            tables[order],
            caps[order],
            seeds[order],
            target_prefix=prefixes[order],
            **options,
        )

    together = run(np.arange(NUM_ROWS))
    expected = generated(together)
    assert len(set(together.lengths)) > 5
    for order in arrangements(NUM_ROWS):
        result = run(order)
        assert generated(result) == [expected[row] for row in order]
        np.testing.assert_allclose(
            result.scores, together.scores[order], rtol=1e-5
        )
        np.testing.assert_array_equal(result.finished, together.finished[order])


@pytest.mark.parametrize("leave_together", [1, 2, 3, 10**6])
def test_it_does_not_matter_when_done_rows_leave(
    tables, monkeypatch, leave_together
):
    seeds = seeds_of_lines(8, NUM_ROWS)
    options = OPTIONS["all three"]
    expected = sample_tables(tables, CAPS, seeds, **options)
    monkeypatch.setattr(loop, "LEAVE_TOGETHER", leave_together)
    sizes = []

    def watched(token_ids, position, state):
        sizes.append(len(token_ids))
        return step(token_ids, position, state)

    result = sample(watched, start(tables), CAPS, seeds, **as_keywords(options))
    assert_equal(result, expected)
    if leave_together == 1:
        assert set(sizes) == {NUM_ROWS}
    else:
        assert len(set(sizes)) > 3


def test_a_sentence_goes_on_from_a_prefix_as_from_what_was_drawn(tables):
    caps = [9] * NUM_ROWS
    seeds = seeds_of_lines(6, NUM_ROWS)
    whole = sample_tables(tables, caps, seeds, min_length=4)
    result = sample_tables(
        tables,
        caps,
        seeds,
        min_length=4,
        target_prefix=whole.token_ids[:, :3],
    )
    assert_equal(result, whole)


def test_what_is_forced_may_be_what_is_forbidden(tables):
    result = sample_tables(
        tables,
        [5] * NUM_ROWS,
        seeds_of_lines(6, NUM_ROWS),
        target_prefix=[[7, 7, 2]],
        forbidden_ids=(0, 1, 7),
        min_length=5,
        no_repeat_ngram_size=1,
    )
    assert generated(result) == [[7, 7, 2]] * NUM_ROWS
    assert result.finished.all()


def test_pad_and_bos_are_never_drawn(tables):
    tables = tables.copy()
    tables[..., :2] += 9.0
    caps = [9] * NUM_ROWS
    seeds = seeds_of_lines(1, NUM_ROWS)
    for forbidden_ids in ((), (5,)):
        drawn = sample_tables(tables, caps, seeds, forbidden_ids=forbidden_ids)
        drawn = np.concatenate(generated(drawn))
        assert not {0, 1} & set(drawn.tolist())


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_occurs_twice(tables, size):
    tables = tables.copy()
    tables[..., 6:] -= 4.0
    result = sample_tables(
        tables,
        [9] * NUM_ROWS,
        seeds_of_lines(2, NUM_ROWS),
        no_repeat_ngram_size=size,
        min_length=3,
    )
    for ids in generated(result):
        ngrams = [tuple(ids[i : i + size]) for i in range(len(ids))]
        ngrams = ngrams[: len(ids) - size + 1]
        assert len(set(ngrams)) == len(ngrams)
    assert len(np.concatenate(generated(result))) > 3 * NUM_ROWS


def test_a_dead_end_gives_no_hypothesis_and_disturbs_no_other(tables):
    tables = tables[:30].copy()
    # After bos these have no way on, or only from the second id.
    tables[3:6] = -np.inf
    tables[7:9] = -np.inf
    tables[7:9, 1, 6] = 0.0
    caps, seeds = [7] * 30, np.array(seeds_of_lines(2, 30))
    result = sample_tables(tables, caps, seeds)
    dead = np.isin(np.arange(30), [3, 4, 5, 7, 8])
    assert np.isneginf(result.scores[dead]).all()
    assert result.lengths[dead].tolist() == [0] * 5
    assert not result.finished[dead].any()
    assert (result.token_ids[dead] == 0).all()
    alone = sample_tables(tables[~dead], [7] * 25, seeds[~dead])
    assert np.isfinite(alone.scores).all()
    assert_equal([each[~dead] for each in result], alone)


def test_constraints_can_make_a_dead_end(tables):
    # Ids 3 to 10, each of them once; the ninth cannot be.
    caps = [8, 9] * 20
    result = sample_tables(
        tables[:40],
        caps,
        seeds_of_lines(2, 40),
        no_repeat_ngram_size=1,
        min_length=20,
    )
    assert result.lengths.tolist() == [8, 0] * 20
    assert (np.sort(result.token_ids[::2]) == np.arange(3, 11)).all()
    assert np.isfinite(result.scores[::2]).all()
    assert np.isneginf(result.scores[1::2]).all()
    assert (result.token_ids[1::2] == 0).all()
    assert not result.finished.any()


def test_scores_are_of_the_model_alone():
    probabilities = np.array([0.05, 0.05, 0.2, 0.1, 0.6])
    tables = np.tile(np.log(probabilities), (50, 3, 1)).astype("float32")
    options = {
        "temperature": 3.0,
        "top_k": 2,
        "top_p": 0.9,
        "repetition_penalty": 1.2,
        "min_length": 2,
        "forbidden_ids": (0, 1, 4),
    }
    result = sample_tables(tables, [4] * 50, seeds_of_lines(0, 50), **options)
    for ids, score in zip(generated(result), result.scores, strict=True):
        assert score == pytest.approx(np.log(probabilities[ids]).sum(), 1e-5)
    assert len(set(result.lengths)) == 3


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.6, "top_p": 0.85},
        {"temperature": 2.0, "top_k": 3},
        {"top_k": 4, "top_p": 0.7},
    ],
)
def test_sentences_are_as_frequent_as_they_are_likely(options):
    """Pairs of ids: the second does not depend on how the first was drawn."""
    count, vocab_size = 30_000, 7
    table = history_tables(1, vocab_size, seed=4, scale=1.0)
    result = sample_tables(
        np.tile(table, (count, 1, 1)),
        [2] * count,
        seeds_of_lines(11, count),
        **options,
    )
    counts = np.zeros((vocab_size, vocab_size))
    np.add.at(counts, tuple(result.token_ids.T), 1)
    after = logits_after(table[0])

    def shares(ids):
        logits = after(ids).astype("float64")
        logits[:2] = -np.inf
        return by_id(*distribution(logits, **options), vocab_size)

    expected = shares([])[:, None] * np.array(
        [
            # Nothing but padding comes after eos.
            np.eye(vocab_size)[0] if first == 2 else shares([first])
            for first in range(vocab_size)
        ]
    )
    assert_distributed(counts, expected)


def test_lines_of_two_calls_are_independent():
    count = 30_000
    table = np.zeros((count, 3, 7), "float32")
    one, other = (
        sample_tables(table, [1] * count, seeds_of_lines(first, count))
        for first in (5, 6)
    )
    counts = np.zeros((7, 7))
    np.add.at(counts, (one.token_ids[:, 0], other.token_ids[:, 0]), 1)
    assert_distributed(counts[2:, 2:], np.full((5, 5), 1 / 25))


def test_half_precision_logits_give_float32_scores(tables):
    seeds = seeds_of_lines(5, NUM_ROWS)
    half = sample_tables(tables.astype("float16"), CAPS, seeds)
    rounded = tables.astype("float16").astype("float32")
    assert half.scores.dtype == np.float32
    assert_equal(half, sample_tables(rounded, CAPS, seeds))


def test_a_largest_length_of_zero_or_less_generates_nothing(tables):
    result = sample_tables(tables[:3], [0, 4, -3], seeds_of_lines(5, 3))
    assert result.lengths.tolist()[::2] == [0, 0]
    assert result.lengths[1] > 0
    assert result.scores.tolist()[::2] == [0.0, 0.0]
    assert not result.finished[::2].any()
    assert (result.token_ids[::2] == 0).all()


def test_a_batch_may_have_no_rows(tables):
    result = sample_tables(tables[:0], [], [])
    assert result.token_ids.shape == (0, 0)
    assert result.scores.shape == (0,)


def test_special_ids_may_be_others():
    table = np.full((6, 7, 7), -9.0, "float32")
    table[:, 6, 5] = table[:, 5, 3] = table[:, 3, 4] = 9.0
    table[:, :, 1] = 30.0  # Pad, and bos below.
    table[:, :, 6] = 20.0

    def last_id_step(token_ids, position, state):
        logits = tf.gather(state.sentence, token_ids, batch_dims=1)
        return logits, state

    result = sample(
        last_id_step,
        SearchState(tf.constant(table)),
        [4, 2, 4, 4, 4, 4],
        seeds_of_lines(1, 6),
        pad_id=1,
        bos_id=6,
        eos_id=4,
    )
    expected = [[5, 3, 4]] * 6
    expected[1] = [5, 3, 1]
    assert result.token_ids.numpy().tolist() == expected
    assert result.finished.numpy().tolist() == [True, False] + [True] * 4


@pytest.fixture(params=[True, False], ids=["eager", "graph"])
def sample_with_model(request, generator):
    """The decoding function of a Transformer, in and without a graph."""
    tf.config.run_functions_eagerly(request.param)
    yield generator.sample
    tf.config.run_functions_eagerly(False)


def test_a_seed_repeats_whatever_was_drawn_before(sample_with_model):
    source_ids = random_sources(5, seed=2)
    seeds = seeds_of_lines(9, 5)
    first = decode(sample_with_model, source_ids, seed=seeds, max_length=6)
    other = decode(
        sample_with_model, source_ids, seed=seeds_of_lines(10, 5), max_length=6
    )
    again = decode(sample_with_model, source_ids, seed=seeds, max_length=6)
    assert_equal(again, first)
    for one, two in zip(kept_ids(first), kept_ids(other), strict=True):
        assert one != two


def test_a_sentence_does_not_depend_on_its_batch(sample_with_model):
    source_ids = random_sources(7, seed=3)
    source_ids[2:5] = source_ids[1]
    seeds = np.array(seeds_of_lines(2, 7))
    options = {"max_length": 6, "temperature": 1.5}
    together = decode(sample_with_model, source_ids, seed=seeds, **options)
    expected = kept_ids(together)
    assert len(set(expected)) == 7
    wider = np.pad(source_ids, ((0, 0), (0, 3)))[::-1]
    backwards = decode(sample_with_model, wider, seed=seeds[::-1], **options)
    assert kept_ids(backwards) == expected[::-1]
    for row in (0, 3):
        one = slice(row, row + 1)
        alone = decode(
            sample_with_model, source_ids[one], seed=seeds[one], **options
        )
        assert kept_ids(alone) == [expected[row]]
        assert alone.scores[0] == pytest.approx(together.scores[row], abs=1e-4)


def test_top_k_beyond_the_vocabulary_is_off_and_of_1_is_greedy(
    sample_with_model, generator
):
    source_ids = random_sources(4, seed=4)
    inputs = {"seed": seeds_of_lines(3, 4), "max_length": 5}
    off = decode(sample_with_model, source_ids, top_k=0, **inputs)
    for top_k in (32, 33, 10**6, -1):
        found = decode(sample_with_model, source_ids, top_k=top_k, **inputs)
        assert_equal(found, off)
    greedy = decode(generator.greedy, source_ids, max_length=5)
    assert kept_ids(off) != kept_ids(greedy)
    for options in ({"top_k": 1}, {"temperature": 0.0}):
        found = decode(sample_with_model, source_ids, **inputs, **options)
        assert kept_ids(found) == kept_ids(greedy)
        np.testing.assert_allclose(found.scores, greedy.scores, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "top_k",
            -1,
            "top_k must be an int from 0 to 2147483647, got top_k=-1",
        ),
        ("top_k", 1.5, "top_k must be an int from 0 to .*, got top_k=1.5"),
        ("top_p", 0.0, "top_p must be a number from 1e-06 to 1, got top_p=0.0"),
        ("top_p", 1.1, "top_p must be a number .* to 1, got top_p=1.1"),
        (
            "temperature",
            -0.5,
            "temperature must be a number from 0 to 100, got temperature=-0.5",
        ),
        (
            "temperature",
            float("nan"),
            "temperature must be a number from 0 to 100, got temperature=nan",
        ),
    ],
)
def test_python_names_the_option_that_is_out_of_range(name, value, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        complete_options("sample", {name: value})
