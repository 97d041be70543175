import numpy as np
import pytest

from keras_transformer.layers import TokenEmbedding
from tests.support.small_models import difference, randomize, to_numpy

IDS = np.array([[5, 2, 0], [16, 7, 2]])


def embedding_of(vocab_size=17, d_model=11, **arguments):
    layer = TokenEmbedding(vocab_size, d_model, **arguments)
    layer.build()
    return randomize(layer)


def test_look_up_is_scaled_by_the_root_of_the_width():
    layer = embedding_of(d_model=64)
    table = to_numpy(layer.embeddings)
    assert difference(layer(IDS), table[IDS] * 8) < 1e-6


@pytest.mark.parametrize("output_bias", [False, True])
def test_projection_is_not_scaled(output_bias):
    layer = embedding_of(d_model=64, output_bias=output_bias)
    states = np.random.default_rng(3).normal(size=(2, 3, 64))
    expected = states @ to_numpy(layer.embeddings).T
    if output_bias:
        expected = expected + to_numpy(layer.bias)
    logits = layer(states.astype("float32"), project=True)
    assert difference(logits, expected) < 1e-5


def test_rank_of_the_ids_is_free():
    layer = embedding_of()
    assert tuple(layer(np.array(3)).shape) == (11,)
    assert tuple(layer(np.array([3, 5])).shape) == (2, 11)
    assert tuple(layer(np.array([[[3, 5, 7]]])).shape) == (1, 1, 3, 11)


def test_one_matrix_serves_both_uses():
    layer = embedding_of()
    assert layer.count_params() == 17 * 11
    assert embedding_of(output_bias=True).count_params() == 17 * 11 + 17


def test_both_uses_start_at_unit_scale():
    layer = TokenEmbedding(1009, 64)
    vectors = to_numpy(layer(np.arange(1009)))
    states = np.random.default_rng(0).normal(size=(53, 64)).astype("float32")
    logits = to_numpy(layer(states, project=True))
    assert vectors.std() == pytest.approx(1, abs=0.05)
    assert logits.std() == pytest.approx(1, abs=0.05)
