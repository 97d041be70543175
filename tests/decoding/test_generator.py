"""Decoding of a Transformer: options, odd inputs, agreement of paths."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import Generator, SearchState, beam_search
from keras_transformer.decoding.signatures import SIGNATURES
from keras_transformer.layers import FixedCache
from tests.support.decoding_runs import decode, kept_ids, random_sources

VARIED = 100


def decoder_inputs(ids):
    return np.concatenate([np.ones((len(ids), 1)), ids[:, :-1]], axis=1)


def all_at_once(transformer, source_ids, target_ids):
    return transformer(
        {
            "source_ids": tf.constant(source_ids),
            "target_ids": tf.constant(target_ids, tf.int32),
        }
    )


def teacher_forced(transformer, source_ids, token_ids, lengths):
    """Gives the log-probability of each row, from all positions at once."""
    logits = all_at_once(transformer, source_ids, decoder_inputs(token_ids))
    log_probs = tf.nn.log_softmax(logits).numpy()
    chosen = np.take_along_axis(log_probs, token_ids[:, :, None], axis=2)
    kept = np.arange(token_ids.shape[1]) < lengths[:, None]
    return (chosen[:, :, 0] * kept).sum(axis=1)


def test_beam_of_one_equals_greedy(generator):
    source_ids = random_sources(200, seed=0)
    result = decode(generator.greedy, source_ids)
    one = decode(generator.beam, source_ids, beam_size=1, length_penalty=0.0)
    # Dull outputs would prove nothing.
    assert len({tuple(row) for row in result.token_ids.tolist()}) > VARIED
    assert (result.lengths == 1).any()
    assert 20 < result.finished.sum() < 180
    np.testing.assert_array_equal(one.token_ids[:, 0], result.token_ids)
    np.testing.assert_array_equal(one.lengths[:, 0], result.lengths)
    np.testing.assert_array_equal(one.finished[:, 0], result.finished)
    np.testing.assert_allclose(one.scores[:, 0], result.scores, atol=1e-4)


def test_beam_of_one_equals_greedy_when_eos_comes_first(generator, favour):
    favour(generator.transformer, [2], 20.0)
    source_ids = random_sources(5, seed=1)
    result = decode(generator.greedy, source_ids)
    one = decode(generator.beam, source_ids, beam_size=1, length_penalty=0.0)
    assert result.token_ids.tolist() == [[2]] * 5
    assert one.token_ids.tolist() == [[[2]]] * 5
    np.testing.assert_allclose(one.scores[:, 0], result.scores, atol=1e-4)


@pytest.mark.parametrize("as_in_the_paper", [False, True])
def test_scores_are_those_of_teacher_forcing(
    generator, make_transformer, as_in_the_paper
):
    if as_in_the_paper:
        generator = Generator(
            make_transformer(
                seed=7, norm_first=False, tying="all", eos_bias=0.5
            )
        )
    transformer = generator.transformer
    source_ids = random_sources(13, seed=2)
    result = decode(generator.greedy, source_ids, max_length=17)
    np.testing.assert_allclose(
        result.scores,
        teacher_forced(
            transformer, source_ids, result.token_ids, result.lengths
        ),
        atol=1e-4,
    )
    alpha = 0.8
    result = decode(
        generator.beam,
        source_ids,
        beam_size=3,
        num_hypotheses=3,
        length_penalty=alpha,
        max_length=17,
    )
    for rank in range(3):
        lengths = result.lengths[:, rank]
        log_probs = teacher_forced(
            transformer, source_ids, result.token_ids[:, rank], lengths
        )
        np.testing.assert_allclose(
            result.scores[:, rank],
            log_probs / ((5 + lengths) / 6) ** alpha,
            atol=1e-4,
        )


def test_a_fixed_cache_gives_the_same_logits(transformer):
    source_ids = tf.constant(random_sources(5, seed=3))
    fixed = functools.partial(FixedCache.empty, length=9)
    growing_state = transformer.start(source_ids)
    fixed_state = transformer.start(source_ids, fixed)
    target_ids = np.random.default_rng(1).integers(3, 32, (5, 7))
    target_ids[:, 0] = 1
    everything = all_at_once(transformer, source_ids, target_ids)
    caches = [growing_state[1], fixed_state[1]]
    for position in range(7):
        for form, sentence in enumerate((growing_state[0], fixed_state[0])):
            logits, caches[form], _ = transformer.step(
                target_ids[:, position], position, sentence, caches[form]
            )
            np.testing.assert_allclose(
                logits, everything[:, position], atol=1e-4
            )


def test_a_search_over_fixed_caches_finds_the_same(transformer, generator):
    source_ids = random_sources(5, seed=4)
    fixed = functools.partial(FixedCache.empty, length=12)

    @tf.function
    def search(source_ids):
        def step(token_ids, position, state):
            logits, caches, _ = transformer.step(token_ids, position, *state)
            return logits, SearchState(state.sentence, caches)

        return beam_search(
            step,
            SearchState(*transformer.start(source_ids, fixed)),
            [12] * 5,
            num_hypotheses=4,
        )

    result = search(tf.constant(source_ids))
    expected = decode(
        generator.beam, source_ids, num_hypotheses=4, max_length=12
    )
    np.testing.assert_array_equal(result.token_ids, expected.token_ids)
    np.testing.assert_allclose(result.scores, expected.scores, atol=1e-4)


def test_ids_outside_the_vocabulary_count_as_unk(generator):
    strange = np.array([[5, -1, 9, 32, 7, 10**6, -(10**9), 2]], "int32")
    unknown = np.array([[5, 3, 9, 3, 7, 3, 3, 2]], "int32")
    for function in (generator.greedy, generator.beam):
        one, other = decode(function, strange), decode(function, unknown)
        assert kept_ids(one) == kept_ids(other) != [()]
        np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ({"beam_size": 0}, {"beam_size": 1}),
        ({"beam_size": -5, "num_hypotheses": 3}, {"beam_size": 1}),
        ({"num_hypotheses": 9}, {"num_hypotheses": 4}),
        ({"num_hypotheses": 0}, {"num_hypotheses": 1}),
        ({"length_penalty": 100.0}, {"length_penalty": 10.0}),
        ({"length_penalty": -100.0}, {"length_penalty": -10.0}),
        ({"min_length": -3}, {"min_length": 0}),
        ({"max_length": -7}, {"max_length": -1}),
    ],
)
def test_options_outside_their_range_are_mended(generator, given, mended):
    source_ids = random_sources(3, seed=5)
    limit = {"max_length": 11}
    one = decode(generator.beam, source_ids, **{**limit, **given})
    other = decode(generator.beam, source_ids, **{**limit, **mended})
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


def test_smallest_and_largest_lengths_are_kept(generator):
    source_ids = random_sources(29, seed=6)
    for function in (generator.greedy, generator.beam):
        result = decode(function, source_ids, min_length=4, max_length=9)
        assert result.lengths.min() >= 4
        assert result.lengths.max() == 9
        assert (result.lengths < 9).any()
        assert (result.lengths[~result.finished] == 9).all()
        nothing = decode(function, source_ids, max_length=0)
        assert nothing.token_ids.shape[-1] == 0
        assert not nothing.scores.any()


def test_one_trace_serves_all_calls(generator):
    for batch, width, seed in ((1, 4, 1), (5, 9, 2), (3, 13, 3)):
        source_ids = random_sources(batch, seed, width)
        decode(generator.greedy, source_ids, max_length=seed, min_length=2)
        decode(
            generator.beam,
            source_ids,
            beam_size=1 + seed,
            num_hypotheses=seed,
            length_penalty=seed / 2,
            max_length=seed,
            min_length=seed - 1,
        )
    assert generator.greedy.experimental_get_tracing_count() == 1
    assert generator.beam.experimental_get_tracing_count() == 1


def test_eager_decoding_equals_that_of_the_graph(generator):
    source_ids = random_sources(5, seed=9)
    limit = {"max_length": 7}
    graph = [
        decode(generator.greedy, source_ids, **limit),
        decode(generator.beam, source_ids, num_hypotheses=3, **limit),
    ]
    tf.config.run_functions_eagerly(True)
    try:
        eager = [
            decode(generator.greedy, source_ids, **limit),
            decode(generator.beam, source_ids, num_hypotheses=3, **limit),
        ]
    finally:
        tf.config.run_functions_eagerly(False)
    for one, other in zip(eager, graph, strict=True):
        np.testing.assert_array_equal(one.token_ids, other.token_ids)
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-4)


@pytest.mark.parametrize("name", ["greedy", "beam"])
def test_names_and_types_are_those_of_the_signatures(generator, name):
    result = getattr(generator, name)(
        source_ids=tf.constant(random_sources(2, seed=10))
    )
    signature = SIGNATURES[name]
    assert set(result) == {each.name for each in signature.outputs}
    for each in signature.outputs:
        assert result[each.name].dtype == each.dtype
        assert result[each.name].shape.rank == len(each.shape)


def test_half_precision_models_give_float32_scores(make_transformer):
    generator = Generator(make_transformer(seed=11, dtype="mixed_float16"))
    source_ids = random_sources(5, seed=11)
    result = decode(generator.beam, source_ids, max_length=9)
    assert result.scores.dtype == np.float32
    assert np.isfinite(result.scores).all()


@pytest.mark.parametrize("size", [-1, 0, 2, 33])
def test_the_target_vocabulary_must_fit_the_model(transformer, size):
    message = (
        "target_vocab_size must be above eos_id=2 and at most that of the "
        f"model, 32, got target_vocab_size={size}"
    )
    with pytest.raises(ValueError, match=message):
        Generator(transformer, target_vocab_size=size)


def test_another_backend_is_refused(transformer, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="decoding needs KERAS_BACKEND=tens"):
        Generator(transformer)
