"""One target position at a time gives what all positions at once give."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Step
from keras_transformer.layers.attention import HIDDEN_SCORE
from keras_transformer.transformer import TYING_MODES
from tests.support.small_models import (
    difference,
    random_ids,
    shared_transformer,
    to_numpy,
)
from tests.support.variants import VARIANT

SOURCE = random_ids([5, 3])
LENGTH = 5
PARTS = {"paper": {}, "variant": VARIANT}


def targets(rows):
    ids = np.random.default_rng(1).integers(4, 17, (rows, LENGTH))
    ids[:, 0] = 1
    return ids.astype("int32")


def step_by_step(model, target_ids):
    """Gives logits `(R, T, V)` and the weights of each step."""
    sentence, caches = model.start(SOURCE)
    logits, weights = [], []
    for position in range(target_ids.shape[1]):
        step, caches, attended = model.step(
            ops.convert_to_tensor(target_ids[:, position]),
            Step(position),
            sentence,
            caches,
        )
        logits.append(to_numpy(step))
        weights.append(to_numpy(attended))
    return np.stack(logits, axis=1), weights


@pytest.mark.parametrize("variant", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("tying", TYING_MODES)
def test_step_by_step_equals_all_at_once(tying, norm_first, variant):
    model = shared_transformer(
        tying=tying, norm_first=norm_first, output_bias=True, **variant
    )
    target = targets(rows=2)
    expected, attention = all_at_once(model, target)
    logits, weights = step_by_step(model, target)
    assert difference(logits, expected) < 1e-5
    for position, step in enumerate(weights):
        assert step.shape == (2, 3, 1, 5)
        assert difference(step[:, :, 0], attention[:, :, position]) < 1e-5
        np.testing.assert_allclose(step.sum(-1), 1, rtol=1e-5)
        assert np.all(step[1, :, :, 3:] == 0)


def all_at_once(model, target):
    states, weights = model.decode(SOURCE, target, return_weights=True)
    return to_numpy(model.project(states)), to_numpy(weights)


def test_dropout_is_off_when_decoding():
    model = shared_transformer(dropout=0.5, attention_dropout=0.5)
    target = targets(rows=2)
    logits, _ = step_by_step(model, target)
    again, _ = step_by_step(model, target)
    assert difference(logits, again) == 0
    plain, _ = step_by_step(shared_transformer(), target)
    assert difference(logits, plain) == 0


def test_caches_have_the_compute_dtype():
    model = shared_transformer(dtype="mixed_float16")
    sentence, caches = model.start(SOURCE)
    assert len(caches) == len(sentence["memory"]) == 2
    assert to_numpy(caches[0].keys).shape == (2, 3, 0, 5)
    assert to_numpy(caches[0].values).dtype == "float16"
    np.testing.assert_array_equal(
        to_numpy(sentence["mask"]), (SOURCE != 0)[:, None]
    )


def test_sentence_of_padding_alone_decodes_without_nan():
    model = shared_transformer()
    source = np.array([[5, 6, 2], [0, 0, 0]])
    sentence, caches = model.start(source)
    bos = ops.convert_to_tensor([1, 1])
    logits, _, weights = model.step(bos, Step(0), sentence, caches)
    assert np.isfinite(to_numpy(logits)).all()
    assert np.all(to_numpy(weights)[1] == 0)


@pytest.mark.parametrize("variant", PARTS.values(), ids=PARTS)
def test_hypotheses_that_share_a_cache_find_their_own_prefix_in_it(variant):
    """Each step every hypothesis goes on from any of its sentence."""
    model = shared_transformer(norm_first=True, **variant)
    batch, beams = 2, 3
    generator = np.random.default_rng(3)
    sentence, caches = model.start(SOURCE)
    own = np.tile(np.where(np.eye(beams), 0, HIDDEN_SCORE), (batch, 1))
    lineage = np.zeros((batch * beams, 0))
    paths = np.zeros((batch * beams, 0), "int32")
    first_rows = np.repeat(np.arange(batch) * beams, beams)
    for position in range(LENGTH):
        parents = first_rows + generator.integers(0, beams, batch * beams)
        ids = generator.integers(4, 17, batch * beams) if position else 1
        ids = np.zeros(batch * beams, "int32") + ids
        lineage = np.concatenate([lineage[parents], own], axis=1)
        paths = np.concatenate([paths[parents], ids[:, None]], axis=1)
        bias = ops.convert_to_tensor(lineage.reshape(batch, beams, -1))
        logits, caches, weights = model.step(
            ops.convert_to_tensor(ids, "int32"),
            Step(position, batch, ops.cast(bias, "float32")),
            sentence,
            caches,
        )
        expected = model(
            {
                "source_ids": np.repeat(SOURCE, beams, axis=0),
                "target_ids": paths.astype("int32"),
            }
        )
        assert difference(logits, to_numpy(expected)[:, -1]) < 1e-5
    assert to_numpy(caches[0].keys).shape[:3] == (batch, 3, LENGTH * beams)
    assert tuple(weights.shape) == (batch, 3, beams, 5)
