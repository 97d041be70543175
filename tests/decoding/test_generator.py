"""Decoding of a Transformer: options, odd inputs, agreement of paths."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import Generator, SearchState, beam_search
from keras_transformer.decoding.signatures import SIGNATURES, TOKEN_SIGNATURES
from keras_transformer.layers import Step
from tests.support.decoding_runs import (
    call,
    decode,
    random_sources,
    seeds,
)

VARIED = 100


def asked(signature, count):
    """Gives inputs that a signature must have, beside `source_ids`."""
    if signature == "sample":
        return {"seed": seeds(count)}
    if signature in ("score", "align"):
        return {"target_ids": random_sources(count, seed=count, width=7)}
    return {}


def assert_equal(found, expected):
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_length": 9, "no_repeat_ngram_size": 2},
        {"target_prefix": [[7, 11]], "repetition_penalty": 1.5},
        {"forbidden_ids": [5, 6, 7, 8, 2], "max_length": 13},
    ],
)
def test_a_cold_sample_equals_greedy(generator, options):
    source_ids = random_sources(97, seed=12)
    greedy = call(generator.greedy, source_ids, **options)
    # Of what is so cold, and of one id, the likeliest alone is left.
    for cold in ({"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-6}):
        sample = call(
            generator.sample, source_ids, seed=seeds(97), **options, **cold
        )
        for name in ("token_ids", "lengths", "finished"):
            np.testing.assert_array_equal(sample[name], greedy[name])
        np.testing.assert_allclose(
            sample["scores"], greedy["scores"], atol=1e-4
        )
    warm = call(generator.sample, source_ids, seed=seeds(97), **options)
    ids = [row[:7].tolist() for row in warm["token_ids"]]
    assert ids != [row[:7].tolist() for row in greedy["token_ids"]]


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


def test_a_search_whose_hypotheses_share_nothing_finds_the_same(
    transformer, generator
):
    """Each has a sentence and a cache of its own, which follow it."""
    source_ids = random_sources(5, seed=4)

    @tf.function
    def search(source_ids):
        def step(token_ids, position, state):
            sentence, caches = state.hypothesis
            logits, caches, _ = transformer.step(
                token_ids, Step(position), sentence, caches
            )
            return logits, SearchState(hypothesis=(sentence, caches))

        return beam_search(
            step,
            SearchState(hypothesis=transformer.start(source_ids)),
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
    for signature in TOKEN_SIGNATURES:
        function = getattr(generator, signature)
        one, other = (
            call(function, source_ids, **asked(signature, 1))
            for source_ids in (strange, unknown)
        )
        assert_equal(one, other)
        assert one[SIGNATURES[signature].outputs[0].name].any()


@pytest.mark.parametrize("signature", ["score", "align"])
def test_target_ids_that_are_never_generated_count_as_unk(
    transformer, signature
):
    function = getattr(Generator(transformer, target_vocab_size=29), signature)
    source_ids = random_sources(1, seed=13)
    strange = [[5, -1, 9, 32, 29, 31, 1, 10**6, -(10**9), 0, 7, 2, 0]]
    unknown = [[5, 3, 9, 3, 3, 3, 3, 3, 3, 0, 7, 2, 0]]
    one, other = (
        call(function, source_ids, target_ids=target_ids)
        for target_ids in (strange, unknown)
    )
    assert_equal(one, other)
    per_token = one[SIGNATURES[signature].outputs[0].name][0]
    nothing = [not np.any(value) for value in per_token]
    assert nothing == [i in (9, 12) for i in range(13)]


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ({"beam_size": 0}, {"beam_size": 1}),
        ({"beam_size": -5, "num_hypotheses": 3}, {"beam_size": 1}),
        ({"num_hypotheses": 9}, {"num_hypotheses": 4}),
        ({"num_hypotheses": 0}, {"num_hypotheses": 1}),
        ({"length_penalty": 100.0}, {"length_penalty": 10.0}),
        ({"length_penalty": -100.0}, {"length_penalty": -10.0}),
        ({"length_penalty_form": 7}, {"length_penalty_form": 1}),
        ({"length_penalty_form": -7}, {"length_penalty_form": 0}),
        ({"coverage_penalty": 11.0}, {"coverage_penalty": 10.0}),
        ({"coverage_penalty": -0.5}, {"coverage_penalty": 0.0}),
        ({"early_stopping": 2}, {"early_stopping": 1}),
        ({"early_stopping": -1}, {"early_stopping": 0}),
    ],
)
def test_options_of_beam_outside_their_range_are_mended(
    generator, given, mended
):
    source_ids = random_sources(3, seed=5)
    limit = {"max_length": 11}
    one = call(generator.beam, source_ids, **limit, **given)
    assert_equal(one, call(generator.beam, source_ids, **limit, **mended))


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ({"temperature": -0.5}, {"temperature": 0.0}),
        ({"temperature": 101.0}, {"temperature": 100.0}),
        ({"top_k": -3}, {"top_k": 0}),
        ({"top_k": 33}, {"top_k": 0}),
        ({"top_p": 0.0}, {"top_p": 1e-6}),
        ({"top_p": 1.5}, {"top_p": 1.0}),
    ],
)
def test_options_of_sampling_outside_their_range_are_mended(
    generator, given, mended
):
    source_ids = random_sources(3, seed=5)
    inputs = {"seed": seeds(3), "max_length": 11}
    one = call(generator.sample, source_ids, **inputs, **given)
    assert_equal(one, call(generator.sample, source_ids, **inputs, **mended))


@pytest.mark.parametrize("signature", ["greedy", "beam", "sample"])
@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ({"min_length": -3}, {"min_length": 0}),
        ({"max_length": -7}, {"max_length": -1}),
        ({"no_repeat_ngram_size": -1}, {"no_repeat_ngram_size": 0}),
        ({"repetition_penalty": 0.0}, {"repetition_penalty": 0.01}),
        ({"repetition_penalty": 101.0}, {"repetition_penalty": 100.0}),
        ({"target_prefix": [[1, 33, -1]]}, {"target_prefix": [[3, 3, 3]]}),
        ({"target_prefix": [[5, 0, 7]]}, {"target_prefix": [[5]]}),
        ({"forbidden_ids": [33, -1, 2**31 - 1]}, {"forbidden_ids": []}),
    ],
)
def test_options_of_all_searches_outside_their_range_are_mended(
    generator, signature, given, mended
):
    function = getattr(generator, signature)
    source_ids = random_sources(3, seed=5)
    inputs = {"max_length": 11, **asked(signature, 3)}
    one = call(function, source_ids, **{**inputs, **given})
    assert_equal(one, call(function, source_ids, **{**inputs, **mended}))


def test_smallest_and_largest_lengths_are_kept(generator):
    source_ids = random_sources(29, seed=6)
    for signature in ("greedy", "beam", "sample"):
        function = functools.partial(
            decode, getattr(generator, signature), **asked(signature, 29)
        )
        result = function(source_ids, min_length=4, max_length=9)
        assert result.lengths.min() >= 4
        assert result.lengths.max() == 9
        assert (result.lengths < 9).any()
        assert (result.lengths[~result.finished] == 9).all()
        nothing = function(source_ids, max_length=0)
        assert nothing.token_ids.shape[-1] == 0
        assert not nothing.scores.any()


def test_one_trace_serves_all_calls(generator):
    for batch, width, seed in ((1, 4, 1), (5, 9, 2), (3, 13, 3)):
        source_ids = random_sources(batch, seed, width)
        lengths = {"max_length": seed, "min_length": seed - 1}
        constraints = {
            "no_repeat_ngram_size": seed,
            "repetition_penalty": seed / 2,
            "target_prefix": np.ones((batch, seed)),
            "forbidden_ids": range(seed),
        }
        options = {
            "greedy": {**lengths, **constraints},
            "beam": {
                **lengths,
                **constraints,
                "beam_size": 1 + seed,
                "num_hypotheses": seed,
                "length_penalty": seed / 2,
                "length_penalty_form": seed - 1,
                "coverage_penalty": seed - 1,
                "early_stopping": seed - 1,
            },
            "sample": {
                **lengths,
                **constraints,
                "temperature": seed,
                "top_k": seed,
                "top_p": seed / 4,
            },
        }
        for signature in TOKEN_SIGNATURES:
            inputs = {
                **asked(signature, batch), **options.get(signature, {})
            }  # fmt: skip
            call(getattr(generator, signature), source_ids, **inputs)
    for signature in TOKEN_SIGNATURES:
        function = getattr(generator, signature)
        assert function.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    ("signature", "options"),
    [
        ("greedy", {"max_length": 7}),
        ("beam", {"max_length": 7, "num_hypotheses": 3}),
        ("beam", {"max_length": 5, "coverage_penalty": 0.3}),
        ("sample", {"max_length": 7, "top_k": 9, "target_prefix": [[7, 3]]}),
        ("score", {}),
        ("align", {}),
    ],
)
def test_eager_decoding_equals_that_of_the_graph(generator, signature, options):
    function = getattr(generator, signature)
    source_ids = random_sources(5, seed=9)
    inputs = {**asked(signature, 5), **options}
    graph = call(function, source_ids, **inputs)
    tf.config.run_functions_eagerly(True)
    try:
        eager = call(function, source_ids, **inputs)
    finally:
        tf.config.run_functions_eagerly(False)
    assert set(eager) == set(graph)
    for name, value in graph.items():
        np.testing.assert_allclose(eager[name], value, atol=1e-4)


@pytest.mark.parametrize("name", TOKEN_SIGNATURES)
def test_names_and_types_are_those_of_the_signatures(generator, name):
    result = getattr(generator, name)(
        source_ids=tf.constant(random_sources(2, seed=10)), **asked(name, 2)
    )
    signature = SIGNATURES[name]
    assert set(result) == {each.name for each in signature.outputs}
    for each in signature.outputs:
        assert result[each.name].dtype == each.dtype
        assert result[each.name].shape.rank == len(each.shape)


def test_half_precision_models_give_float32_scores(make_transformer):
    generator = Generator(make_transformer(seed=11, dtype="mixed_float16"))
    source_ids = random_sources(5, seed=11)
    limits = {"beam": {"max_length": 9}, "sample": {"max_length": 9}}
    for signature in ("beam", "sample", "score", "align"):
        inputs = {**asked(signature, 5), **limits.get(signature, {})}
        result = call(getattr(generator, signature), source_ids, **inputs)
        for each in SIGNATURES[signature].outputs:
            assert result[each.name].dtype == each.dtype
            assert np.isfinite(result[each.name]).all()


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
