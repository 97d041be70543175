"""`score` and `align` tell of a given target what decoding sees of it."""

import numpy as np
import pytest

from keras_transformer.decoding import Generator
from keras_transformer.layers import Step
from tests.support.decoding_runs import call, random_sources, seeds
from tests.support.numpy_transformer import NumpyTransformer

# Prime, so that a swapped axis cannot pass.
PRIMES = {
    "vocab_size": 37,
    "d_model": 13,
    "num_heads": 3,
    "d_k": 5,
    "d_v": 7,
    "d_ff": 29,
}


@pytest.fixture(scope="module")
def forms(make_transformer):
    """Generators with the norm first and, as in the paper, last."""
    return {
        "first": Generator(make_transformer(**PRIMES)),
        "last": Generator(
            make_transformer(
                **PRIMES, norm_first=False, tying="all", seed=7, eos_bias=0.5
            )
        ),
    }


@pytest.fixture(params=["first", "last"])
def generator(request, forms):
    return forms[request.param]


def sources():
    return random_sources(7, seed=2, width=11, vocab_size=37)


def shifted(target_ids):
    return np.pad(target_ids, ((0, 0), (1, 0)), constant_values=1)[:, :-1]


def log_softmax(logits):
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def test_score_is_that_of_the_model_in_numpy(generator):
    source_ids = sources()
    target_ids = random_sources(7, seed=3, width=5, vocab_size=37)
    found = call(generator.score, source_ids, target_ids=target_ids)
    logits = NumpyTransformer(generator.transformer).logits(
        source_ids, shifted(target_ids)
    )
    expected = np.take_along_axis(
        log_softmax(logits), target_ids[:, :, None], axis=2
    )[:, :, 0]
    expected[target_ids == 0] = 0.0
    assert (target_ids == 0).any()
    np.testing.assert_allclose(found["token_log_probs"], expected, atol=1e-4)
    np.testing.assert_allclose(found["scores"], expected.sum(1), atol=1e-4)


def test_score_of_an_output_is_that_which_decoding_gave_it(generator):
    source_ids = sources()
    for function, inputs in (
        (generator.greedy, {}),
        (generator.greedy, {"repetition_penalty": 2.0, "min_length": 9}),
        (generator.greedy, {"target_prefix": [[7, 23, 31]]}),
        (generator.sample, {"seed": seeds(7), "temperature": 0.7}),
        (generator.sample, {"seed": seeds(7), "top_k": 5, "top_p": 0.9}),
    ):
        output = call(function, source_ids, max_length=17, **inputs)
        found = call(
            generator.score, source_ids, target_ids=output["token_ids"]
        )
        np.testing.assert_allclose(found["scores"], output["scores"], atol=1e-4)


def test_score_of_each_hypothesis_gives_that_of_beam_search(generator):
    source_ids = sources()
    output = call(
        generator.beam,
        source_ids,
        num_hypotheses=3,
        length_penalty=0.8,
        length_penalty_form=1,
        max_length=11,
    )
    for rank in range(3):
        lengths = output["lengths"][:, rank]
        found = call(
            generator.score,
            source_ids,
            target_ids=output["token_ids"][:, rank],
        )
        np.testing.assert_allclose(
            found["scores"] / lengths**0.8,
            output["scores"][:, rank],
            atol=1e-4,
        )


def attention_of_steps(transformer, source_ids, target_ids):
    """Decodes a given target step by step: `(B, T, S)`, mean of the heads."""
    sentence, caches = transformer.start(source_ids)
    found = []
    for position, token_ids in enumerate(shifted(target_ids).T):
        _, caches, weights = transformer.step(
            token_ids, Step(position), sentence, caches
        )
        found.append(np.asarray(weights)[:, :, 0].mean(axis=1))
    return np.stack(found, axis=1)


def test_align_is_the_attention_of_decoding_step_by_step(generator):
    source_ids = sources()
    target_ids = call(generator.greedy, source_ids, max_length=13)["token_ids"]
    found = call(generator.align, source_ids, target_ids=target_ids)
    expected = attention_of_steps(generator.transformer, source_ids, target_ids)
    real = target_ids != 0
    assert not real.all() and found["attention"].shape == (7, 13, 11)
    np.testing.assert_allclose(
        found["attention"], expected * real[:, :, None], atol=1e-5
    )
    # It differs from token to token and adds up to one, over real sources.
    np.testing.assert_allclose(found["attention"].sum(2), real, atol=1e-5)
    places = np.broadcast_to(source_ids[:, None] == 0, (7, 13, 11))
    assert not found["attention"][places].any()
    assert np.ptp(found["attention"][:, :5], axis=1).max() > 0.1


@pytest.mark.parametrize("form", [0, 1])
def test_coverage_can_be_recomputed_from_the_alignment(generator, form):
    source_ids = sources()
    alpha, beta, limit = 0.7, 0.9, 9
    options = {
        "num_hypotheses": 3,
        "length_penalty": alpha,
        "length_penalty_form": form,
        "max_length": limit,
    }
    output = call(generator.beam, source_ids, coverage_penalty=beta, **options)
    plain = call(generator.beam, source_ids, **options)
    assert (plain["token_ids"] != output["token_ids"]).any()
    # Some ended, others were cut.
    assert output["finished"].any() and not output["finished"].all()
    for rank in range(3):
        target_ids = output["token_ids"][:, rank]
        lengths = output["lengths"][:, rank]
        score = call(generator.score, source_ids, target_ids=target_ids)
        align = call(generator.align, source_ids, target_ids=target_ids)
        attended = align["attention"].astype("float64").sum(axis=1)
        attended = np.where(source_ids != 0, attended, 1.0)
        coverage = np.log(np.minimum(attended, 1.0)).sum(axis=1)
        assert coverage.min() < -1
        divisor = lengths**alpha if form else ((5 + lengths) / 6) ** alpha
        np.testing.assert_allclose(
            output["scores"][:, rank],
            score["scores"] / divisor + beta * coverage,
            atol=1e-4,
        )
