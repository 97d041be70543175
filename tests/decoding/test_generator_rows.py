"""A sentence does not depend on its batch, and outputs hold no odd ids."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import Generator
from tests.support.decoding_runs import decode, kept_ids, random_sources

NUM_SOURCES = 20


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


@pytest.mark.parametrize("mode", ["greedy", "beam"])
def test_a_sentence_does_not_depend_on_its_batch(generator, sources, mode):
    function = getattr(generator, mode)
    options = {"num_hypotheses": 4} if mode == "beam" else {}
    together = decode(function, padded(sources), **options)
    expected = kept_ids(together)
    assert len(set(expected)) > 0.7 * len(expected)
    assert len(set(together.lengths.ravel())) > 5
    for source_ids, indices in arrangements(sources):
        result = decode(function, source_ids, **options)
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


def test_the_default_largest_length_is_that_of_each_row(generator, favour):
    favour(generator.transformer, [2], -30.0)
    source_ids = padded([[5, 2], [7, 8, 9, 2], [5, 6, 7, 8, 9, 10, 2]], 4)
    for function in (generator.greedy, generator.beam):
        result = decode(function, source_ids)
        assert result.lengths.ravel().tolist() == [52, 54, 57]
        assert not result.finished.any()
        assert (result.token_ids.reshape(3, -1)[0, 52:] == 0).all()


@pytest.mark.parametrize("empty", [[2, 0, 0, 0], [0, 0, 0, 0]])
def test_an_empty_source_gives_nothing_and_disturbs_nobody(generator, empty):
    neighbours = [[5, 6, 7, 2], [9, 8, 2, 0]]
    source_ids = np.array([neighbours[0], empty, neighbours[1]], "int32")
    for function in (generator.greedy, generator.beam):
        result = decode(function, source_ids)
        alone = decode(function, np.array(neighbours, "int32"))
        assert result.lengths.reshape(3)[1] == 0
        assert result.scores.reshape(3)[1] == 0.0
        assert not result.finished.reshape(3)[1]
        assert (result.token_ids[1] == 0).all()
        assert kept_ids(result)[::2] == kept_ids(alone)
        np.testing.assert_allclose(result.scores[::2], alone.scores, atol=1e-4)
        only = decode(function, np.array([empty], "int32"))
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
    for function, options in (
        (generator.greedy, {}),
        (generator.beam, {"num_hypotheses": 4}),
        (generator.beam, {"beam_size": 1}),
        (generator.beam, {"beam_size": 50, "num_hypotheses": 9}),
    ):
        ids = kept_ids(decode(function, source_ids, max_length=9, **options))
        appeared = {token_id for each in ids for token_id in each}
        assert not appeared & set(unwanted)
        assert len(appeared) > 7
