import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Encoder, EncoderLayer, padding_mask
from tests.support.small_models import difference, randomize, to_numpy

SIZES = {"d_model": 11, "num_heads": 3, "d_ff": 13, "d_k": 5, "d_v": 7}
SHORT = np.array([[5, 6, 7, 2]])
PADDED = np.array([[5, 6, 7, 2, 0, 0, 0, 0]])


def embedding_with_loud_padding():
    """An embedding with a Keras mask, whose padding no one could miss."""
    layer = keras.layers.Embedding(17, 11, mask_zero=True)
    layer.build()
    randomize(layer)
    table = to_numpy(layer.embeddings).copy()
    table[0] = 1e3
    layer.embeddings.assign(table)
    return layer


def encoder(norm_first, **arguments):
    layer = Encoder(num_layers=3, norm_first=norm_first, **SIZES, **arguments)
    layer.build((None, None, 11))
    return randomize(layer)


class ThreeLayers(keras.Layer):
    """Three encoder layers in a row, between which only Keras' mask flows."""

    def __init__(self, norm_first):
        super().__init__()
        self.supports_masking = True
        self.three = [
            EncoderLayer(**SIZES, norm_first=norm_first) for _ in range(3)
        ]

    def build(self, input_shape):
        for layer in self.three:
            layer.build(input_shape)

    def call(self, states):
        for layer in self.three:
            states = layer(states)
        return states


def stack_of(kind, norm_first):
    if kind is Encoder:
        return encoder(norm_first)
    layers = ThreeLayers(norm_first)
    layers.build((None, None, 11))
    return randomize(layers)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("kind", [Encoder, ThreeLayers])
def test_implicit_mask_hides_padding_in_every_layer(kind, norm_first):
    embedding = embedding_with_loud_padding()
    layer = stack_of(kind, norm_first)
    alone = layer(embedding(SHORT))
    padded = layer(embedding(PADDED))
    assert difference(alone, padded[:, :4]) < 1e-5
    unmasked = layer(ops.convert_to_tensor(to_numpy(embedding(PADDED))))
    assert difference(alone, unmasked[:, :4]) > 1e-2


@pytest.mark.parametrize("norm_first", [False, True])
def test_implicit_mask_hides_padding_in_a_functional_model(norm_first):
    embedding = embedding_with_loud_padding()
    layer = encoder(norm_first)
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer(embedding(ids)))
    padded = model.predict(PADDED, verbose=0)
    assert difference(model(SHORT), padded[:, :4]) < 1e-5


@pytest.mark.parametrize("norm_first", [False, True])
def test_implicit_mask_equals_the_explicit_one(norm_first):
    embedding = embedding_with_loud_padding()
    layer = encoder(norm_first)
    implicit = layer(embedding(PADDED))
    plain = ops.convert_to_tensor(to_numpy(embedding(PADDED)))
    explicit = layer(plain, attention_mask=padding_mask(PADDED))
    assert difference(implicit, explicit) == 0


@pytest.mark.parametrize("norm_first", [False, True])
def test_explicit_mask_adds_to_the_implicit_one(norm_first):
    embedding = embedding_with_loud_padding()
    layer = encoder(norm_first)
    first_three = np.arange(8)[None, None, :] < 3
    both = layer(embedding(PADDED), attention_mask=first_three)
    plain = ops.convert_to_tensor(to_numpy(embedding(PADDED)))
    explicit = layer(plain, attention_mask=first_three)
    assert difference(both, explicit) == 0
    everything = np.ones((1, 1, 8), bool)
    only_implicit = layer(embedding(PADDED), attention_mask=everything)
    assert difference(only_implicit, layer(embedding(PADDED))) == 0


@pytest.mark.parametrize("kind", [Encoder, EncoderLayer])
def test_mask_may_be_passed_by_keyword_as_to_every_keras_layer(kind):
    layer = encoder(False)
    layer = layer if kind is Encoder else layer.layers[0]
    states = np.random.default_rng(0).normal(size=(1, 8, 11))
    states = states.astype("float32")
    by_keyword = layer(states, mask=PADDED != 0)
    explicit = layer(states, attention_mask=padding_mask(PADDED))
    assert difference(by_keyword, explicit) == 0


def test_mask_comes_out_as_it_went_in():
    outputs = encoder(False)(embedding_with_loud_padding()(PADDED))
    np.testing.assert_array_equal(to_numpy(outputs._keras_mask), PADDED != 0)


def test_order_of_words_matters_only_through_positions():
    states = np.random.default_rng(0).normal(size=(1, 5, 11))
    states = states.astype("float32")
    order = [3, 1, 4, 0, 2]
    layer = encoder(False)
    permuted = layer(states[:, order])
    assert difference(permuted, to_numpy(layer(states))[:, order]) < 1e-5


def test_pre_norm_ends_in_one_more_norm():
    assert encoder(False).final_norm is None
    layer = encoder(True)
    layer.final_norm.gamma.assign(np.zeros(11))
    layer.final_norm.beta.assign(np.arange(11))
    states = np.ones((2, 3, 11), "float32")
    expected = np.broadcast_to(np.arange(11), (2, 3, 11))
    assert difference(layer(states), expected) == 0


def test_epsilon_reaches_every_norm():
    layer = encoder(True, epsilon=0.5)
    norms = [layer.final_norm]
    for each in layer.layers:
        norms += [each.self_attention_norm.norm, each.feed_forward_norm.norm]
    assert [norm.epsilon for norm in norms] == [0.5] * 7


@pytest.mark.parametrize(
    "rate", ["dropout", "attention_dropout", "feed_forward_dropout"]
)
def test_each_dropout_acts_when_training_only(rate):
    states = np.random.default_rng(0).normal(size=(2, 3, 11))
    states = states.astype("float32")
    layer = encoder(False, **{rate: 0.5})
    inference = layer(states)
    assert difference(inference, layer(states, training=False)) == 0
    assert difference(inference, encoder(False)(states)) == 0
    assert difference(inference, layer(states, training=True)) > 1e-3
