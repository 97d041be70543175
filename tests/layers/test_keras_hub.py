"""The layers equal those of keras-hub, given the same weights."""

import numpy as np
import pytest

from keras_transformer.layers import (
    Decoder,
    DecoderLayer,
    EncoderLayer,
    padding_mask,
)
from tests.support.small_models import difference, randomize, to_numpy

D_MODEL, NUM_HEADS, D_FF = 15, 3, 13
SOURCE = np.array([[5, 6, 2, 0, 0, 0, 0], [5, 6, 7, 8, 9, 10, 2]])
TARGET = np.array([[1, 6, 7, 8, 0], [1, 9, 10, 11, 12]])
STATES = np.random.default_rng(0).normal(size=(2, 5, 15)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(2, 7, 15)).astype("float32")


def copy_attention(ours, theirs):
    """Their kernels are (D, H, d) and (H, d, D), ours are flat."""
    pairs = [
        (ours.query_projection, theirs._query_dense),
        (ours.key_projection, theirs._key_dense),
        (ours.value_projection, theirs._value_dense),
        (ours.output_projection, theirs._output_dense),
    ]
    for our_dense, their_dense in pairs:
        copy_weights(our_dense, their_dense)


def copy_weights(ours, theirs):
    for our_weight, their_weight in zip(
        ours.weights, theirs.weights, strict=True
    ):
        values = to_numpy(our_weight)
        their_weight.assign(values.reshape(their_weight.shape))


def copy_rest(ours, theirs):
    copy_attention(ours.self_attention, theirs._self_attention_layer)
    copy_weights(
        ours.self_attention_norm.norm, theirs._self_attention_layer_norm
    )
    copy_weights(
        ours.feed_forward.inner, theirs._feedforward_intermediate_dense
    )
    copy_weights(ours.feed_forward.outer, theirs._feedforward_output_dense)
    copy_weights(ours.feed_forward_norm.norm, theirs._feedforward_layer_norm)


def encoder_pair(norm_first, seed=0):
    import keras_hub

    ours = EncoderLayer(
        D_MODEL, NUM_HEADS, D_FF, norm_first=norm_first, epsilon=1e-5
    )
    ours.build((None, None, D_MODEL))
    randomize(ours, seed)
    theirs = keras_hub.layers.TransformerEncoder(
        D_FF,
        NUM_HEADS,
        layer_norm_epsilon=1e-5,
        normalize_first=norm_first,
    )
    theirs.build((None, None, D_MODEL))
    copy_rest(ours, theirs)
    return ours, theirs


def copy_decoder_layer(ours):
    """Makes keras-hub's decoder layer with the weights of ours."""
    import keras_hub

    config = ours.get_config()
    theirs = keras_hub.layers.TransformerDecoder(
        D_FF,
        NUM_HEADS,
        layer_norm_epsilon=config["epsilon"],
        normalize_first=config["norm_first"],
    )
    theirs.build((None, None, D_MODEL), (None, None, D_MODEL))
    copy_rest(ours, theirs)
    copy_attention(ours.cross_attention, theirs._cross_attention_layer)
    copy_weights(
        ours.cross_attention_norm.norm, theirs._cross_attention_layer_norm
    )
    return theirs


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_layer_equals_that_of_keras_hub(norm_first):
    ours, theirs = encoder_pair(norm_first)
    outputs = ours(MEMORY, attention_mask=padding_mask(SOURCE))
    expected = theirs(MEMORY, padding_mask=SOURCE != 0)
    assert difference(outputs, expected) < 1e-5
    assert difference(outputs, ours(MEMORY)) > 1e-3


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_layer_equals_that_of_keras_hub(norm_first):
    ours = DecoderLayer(
        D_MODEL, NUM_HEADS, D_FF, norm_first=norm_first, epsilon=1e-5
    )
    ours.build((None, None, D_MODEL), (None, None, D_MODEL))
    randomize(ours)
    theirs = copy_decoder_layer(ours)
    outputs = ours(
        STATES,
        MEMORY,
        attention_mask=padding_mask(TARGET),
        memory_attention_mask=padding_mask(SOURCE),
    )
    expected = theirs(
        STATES,
        MEMORY,
        decoder_padding_mask=TARGET != 0,
        encoder_padding_mask=SOURCE != 0,
    )
    assert difference(outputs, expected) < 1e-5


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_stack_equals_layers_of_keras_hub_in_a_row(norm_first):
    stack = Decoder(
        2,
        d_model=D_MODEL,
        num_heads=NUM_HEADS,
        d_ff=D_FF,
        norm_first=norm_first,
    )
    stack.build((None, None, D_MODEL), (None, None, D_MODEL))
    randomize(stack)
    outputs = stack(STATES, MEMORY, memory_attention_mask=padding_mask(SOURCE))
    expected = STATES
    for layer in stack.layers:
        expected = copy_decoder_layer(layer)(
            expected, MEMORY, encoder_padding_mask=SOURCE != 0
        )
    assert difference(outputs, stack.finish(expected)) < 1e-5
