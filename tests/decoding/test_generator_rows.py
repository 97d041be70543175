"""A sentence does not depend on its batch, and outputs hold no odd ids."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import Generator
from tests.support.decoding_runs import (
    call,
    decode,
    kept_ids,
    random_sources,
    seeds,
)

NUM_SOURCES = 20
# A forced start for each source, of 0 to 3 ids.
PREFIXES = np.array(
    [
        [*range(4 + i % 7, 4 + i % 7 + i % 4), 0, 0, 0][:3]
        for i in range(NUM_SOURCES)
    ]
)
SEEDS = seeds(NUM_SOURCES)


@pytest.fixture(scope="module")
def sources():
    """Sources of lengths 1 to 20, eos not counted."""
    generator = np.random.default_rng(3)
    return [
        [*generator.integers(4, 32, length).tolist(), 2]
        for length in range(1, NUM_SOURCES + 1)
    ]


def padded(sources, extra=0):
    width = max(len(source) for source in sources) + extra
    rows = np.zeros((len(sources), width), "int32")
    for row, source in enumerate(sources):
        rows[row, : len(source)] = source
    return rows


def arrangements(sources):
    """Yields batches and, for each of their rows, which source it is."""
    everything = list(range(len(sources)))
    yield padded(sources, extra=50), everything
    yield padded(sources[::-1]), everything[::-1]
    shuffled = np.random.default_rng(0).permutation(len(sources)).tolist()
    yield padded([sources[index] for index in shuffled]), shuffled
    for index in everything:
        yield padded([sources[index]]), [index]


@pytest.mark.parametrize(
    ("mode", "options", "of_rows"),
    [
        ("greedy", {}, {}),
        (
            "greedy",
            {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
            {"target_prefix": PREFIXES},
        ),
        ("beam", {"num_hypotheses": 4}, {}),
        (
            "beam",
            {
                "num_hypotheses": 4,
                "coverage_penalty": 0.4,
                "early_stopping": 1,
                "length_penalty_form": 1,
                "no_repeat_ngram_size": 2,
            },
            {"target_prefix": PREFIXES},
        ),
        ("sample", {}, {"seed": SEEDS}),
        (
            "sample",
            {"temperature": 1.7, "top_k": 19, "top_p": 0.9},
            {"seed": SEEDS, "target_prefix": PREFIXES},
        ),
    ],
)
def test_a_sentence_does_not_depend_on_its_batch(
    generator, sources, mode, options, of_rows
):
    function = getattr(generator, mode)
    together = decode(function, padded(sources), **options, **of_rows)
    expected = kept_ids(together)
    assert len(set(expected)) > 0.7 * len(expected)
    assert len(set(together.lengths.ravel())) > 5
    for source_ids, indices in arrangements(sources):
        inputs = {name: value[indices] for name, value in of_rows.items()}
        result = decode(function, source_ids, **options, **inputs)
        shape = together.lengths[indices].shape
        ids = np.empty(len(expected), object)
        ids[:] = expected
        wanted = ids.reshape(together.lengths.shape)[indices].ravel()
        assert kept_ids(result) == wanted.tolist()
        np.testing.assert_allclose(
            result.scores, together.scores[indices], atol=1e-4
        )
        np.testing.assert_array_equal(
            result.finished, together.finished[indices]
        )
        assert result.lengths.shape == shape


@pytest.mark.parametrize("signature", ["score", "align"])
def test_scores_and_attention_do_not_depend_on_the_batch(
    generator, sources, signature
):
    function = getattr(generator, signature)
    targets = sources[7:] + sources[:7]
    together = call(
        function, padded(sources), target_ids=padded(targets, extra=1)
    )
    for source_ids, indices in arrangements(sources):
        target_ids = padded([targets[index] for index in indices])
        result = call(function, source_ids, target_ids=target_ids)
        for name, value in result.items():
            expected = together[name][indices]
            inner = tuple(map(slice, np.minimum(value.shape, expected.shape)))
            np.testing.assert_allclose(value[inner], expected[inner], atol=1e-4)
            for array in (value, expected):
                assert np.count_nonzero(array) == (
                    np.count_nonzero(array[inner])
                )


def test_a_sample_depends_on_its_seed_alone(generator):
    source_ids = np.array([[5, 9, 7, 2]] * 29, "int32")
    twins = np.concatenate([seeds(28), seeds(1)])
    ids = kept_ids(decode(generator.sample, source_ids, seed=twins))
    assert ids[0] == ids[28]
    assert len(set(ids)) > 20
    again = kept_ids(decode(generator.sample, source_ids, seed=twins))
    assert again == ids
    others = kept_ids(decode(generator.sample, source_ids, seed=twins + [1, 0]))
    assert sum(one == other for one, other in zip(ids, others, strict=True)) < 9


def test_the_default_largest_length_is_that_of_each_row(generator, favour):
    favour(generator.transformer, [2], -30.0)
    source_ids = padded([[5, 2], [7, 8, 9, 2], [5, 6, 7, 8, 9, 10, 2]], 4)
    for mode in ("greedy", "beam", "sample"):
        inputs = {"seed": seeds(3)} if mode == "sample" else {}
        result = decode(getattr(generator, mode), source_ids, **inputs)
        assert result.lengths.ravel().tolist() == [52, 54, 57]
        assert not result.finished.any()
        assert (result.token_ids.reshape(3, -1)[0, 52:] == 0).all()


@pytest.mark.parametrize("empty", [[2, 0, 0, 0], [0, 0, 0, 0]])
def test_an_empty_source_gives_nothing_and_disturbs_nobody(generator, empty):
    neighbours = [[5, 6, 7, 2], [9, 8, 2, 0]]
    source_ids = np.array([neighbours[0], empty, neighbours[1]], "int32")
    for mode in ("greedy", "beam", "sample"):
        function, inputs = getattr(generator, mode), [{}] * 3
        if mode == "sample":
            inputs = [{"seed": seeds(3)[rows]} for rows in ([0, 1, 2], [0, 2])]
            inputs.append({"seed": seeds(1)})
        result = decode(function, source_ids, **inputs[0])
        alone = decode(function, np.array(neighbours, "int32"), **inputs[1])
        assert result.lengths.reshape(3)[1] == 0
        assert result.scores.reshape(3)[1] == 0.0
        assert not result.finished.reshape(3)[1]
        assert (result.token_ids[1] == 0).all()
        assert kept_ids(result)[::2] == kept_ids(alone)
        np.testing.assert_allclose(result.scores[::2], alone.scores, atol=1e-4)
        only = decode(function, np.array([empty], "int32"), **inputs[2])
        assert only.token_ids.shape[-1] == 0
        assert only.lengths.ravel().tolist() == [0]


def test_unused_hypotheses_of_an_empty_source_are_marked(generator):
    source_ids = np.array([[2, 0]], "int32")
    result = decode(generator.beam, source_ids, num_hypotheses=3)
    assert result.lengths.tolist() == [[0, 0, 0]]
    assert result.scores.tolist() == [[0.0, -np.inf, -np.inf]]
    assert not result.finished.any()


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_a_batch_may_have_no_rows_and_no_columns(generator, shape):
    source_ids = np.zeros(shape, "int32")
    greedy = decode(generator.greedy, source_ids)
    assert greedy.token_ids.shape == (shape[0], 0)
    beam = decode(generator.beam, source_ids, num_hypotheses=2)
    assert beam.token_ids.shape == (shape[0], 2, 0)
    assert beam.scores.shape == (shape[0], 2)
    seed = seeds(shape[0])
    sample = decode(generator.sample, source_ids, seed=seed)
    assert sample.token_ids.shape == (shape[0], 0)


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0), (3, 5)])
@pytest.mark.parametrize("width", [0, 7])
def test_odd_batches_have_scores_and_attention(generator, shape, width):
    inputs = {
        "source_ids": np.zeros(shape, "int32"),
        "target_ids": np.full((shape[0], width), 5),
    }
    score = call(generator.score, **inputs)
    assert score["token_log_probs"].shape == (shape[0], width)
    assert score["scores"].shape == (shape[0],)
    assert np.isfinite(score["scores"]).all()
    attention = call(generator.align, **inputs)["attention"]
    assert attention.shape == (shape[0], width, shape[1])
    assert not attention.any()  # There is nothing but padding.


def test_ids_that_are_no_pieces_never_appear_however_likely(
    make_transformer, favour
):
    transformer = make_transformer(vocab_size=64, eos_bias=1.5)
    unwanted = [0, 1, *range(51, 64)]
    favour(transformer, unwanted, 20.0)
    generator = Generator(transformer, target_vocab_size=51)
    source_ids = random_sources(40, seed=1, vocab_size=64)
    first = transformer(
        {
            "source_ids": tf.constant(source_ids),
            "target_ids": tf.ones((40, 2), tf.int32),
        }
    )
    assert np.isin(np.argmax(first, axis=-1), unwanted).all()
    constraints = {
        "repetition_penalty": 0.01,
        "no_repeat_ngram_size": 1,
        "target_prefix": [[1, 55, 7]],
    }
    for mode, options in (
        ("greedy", {}),
        ("greedy", constraints),
        ("beam", {"num_hypotheses": 4}),
        ("beam", {"beam_size": 1}),
        ("beam", {"beam_size": 50, "num_hypotheses": 9}),
        ("beam", {"num_hypotheses": 4, "coverage_penalty": 1.0}),
        ("beam", {"num_hypotheses": 4, **constraints}),
        ("sample", {}),
        ("sample", constraints),
        ("sample", {"temperature": 0.0}),
        ("sample", {"temperature": 100.0}),
        ("sample", {"top_k": 3}),
        ("sample", {"top_p": 0.3}),
    ):
        if mode == "sample":
            options = {"seed": seeds(40), **options}
        result = decode(
            getattr(generator, mode), source_ids, max_length=9, **options
        )
        ids = kept_ids(result)
        appeared = {token_id for each in ids for token_id in each}
        assert not appeared & set(unwanted)
        assert len(appeared) > 7
        assert all(ids)
