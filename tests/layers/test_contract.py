"""Every layer runs through the same contract."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import layers
from tests.support.layer_contract import check_layer

STATES = np.random.default_rng(0).normal(size=(2, 3, 11)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(2, 5, 11)).astype("float32")
IDS = np.array([[5, 2, 0], [16, 7, 2]], "int32")
LAYER = {"d_model": 11, "num_heads": 3, "d_ff": 13, "d_k": 5, "d_v": 7}


@keras.saving.register_keras_serializable("tests")
def doubled(inputs):
    return inputs * 2


@keras.saving.register_keras_serializable("tests")
def rms_norm(**arguments):
    return keras.layers.RMSNormalization(**arguments)


@keras.saving.register_keras_serializable("tests")
def turned(states, positions):
    """Not a rotation, but a function of positions for any width."""
    angles = ops.expand_dims(ops.cast(positions, states.dtype), -1)
    return states * ops.cos(angles)


VARIANT = {**LAYER, "make_norm": rms_norm, "rotate": turned}
CASES = {
    "TokenEmbedding": dict(
        layer_class=layers.TokenEmbedding,
        arguments={"vocab_size": 17, "d_model": 11, "output_bias": False},
        inputs=[IDS],
    ),
    "TokenEmbedding that projects": dict(
        layer_class=layers.TokenEmbedding,
        arguments={"vocab_size": 17, "d_model": 11, "output_bias": True},
        inputs=[STATES],
        call=lambda layer, states: layer(states, project=True),
    ),
    "PositionalEncoding": dict(
        layer_class=layers.PositionalEncoding, arguments={}, inputs=[STATES]
    ),
    "MultiHeadAttention": dict(
        layer_class=layers.MultiHeadAttention,
        arguments={
            "d_model": 11,
            "num_heads": 3,
            "d_k": 5,
            "d_v": 7,
            "use_bias": False,
        },
        inputs=[STATES, MEMORY[..., :7], MEMORY[..., :5]],
    ),
    "FeedForward": dict(
        layer_class=layers.FeedForward,
        arguments={"d_model": 11, "d_ff": 13, "activation": "gelu"},
        inputs=[STATES],
    ),
    "AddNorm": dict(
        layer_class=layers.AddNorm,
        arguments={"norm_first": False, "epsilon": 1e-3},
        inputs=[STATES],
        call=lambda layer, states: layer(states, sublayer=doubled),
    ),
    "AddNorm with the norm first": dict(
        layer_class=layers.AddNorm,
        arguments={"norm_first": True, "epsilon": 1e-3},
        inputs=[STATES],
        call=lambda layer, states: layer(states, sublayer=doubled),
    ),
    "AddNorm with another norm": dict(
        layer_class=layers.AddNorm,
        arguments={"make_norm": rms_norm},
        inputs=[STATES],
        call=lambda layer, states: layer(states, sublayer=doubled),
    ),
    "MultiHeadAttention that rotates": dict(
        layer_class=layers.MultiHeadAttention,
        arguments={"d_model": 12, "num_heads": 3, "rotate": turned},
        inputs=[STATES, MEMORY],
    ),
    "EncoderLayer": dict(
        layer_class=layers.EncoderLayer,
        arguments=LAYER,
        inputs=[STATES],
        arguments_of=[layers.LayerOptions],
    ),
    "EncoderLayer of variants": dict(
        layer_class=layers.EncoderLayer,
        arguments=VARIANT,
        inputs=[STATES],
        arguments_of=[layers.LayerOptions],
    ),
    "DecoderLayer": dict(
        layer_class=layers.DecoderLayer,
        arguments=LAYER,
        inputs=[STATES, MEMORY],
        arguments_of=[layers.LayerOptions],
    ),
    "DecoderLayer of variants": dict(
        layer_class=layers.DecoderLayer,
        arguments=VARIANT,
        inputs=[STATES, MEMORY],
        arguments_of=[layers.LayerOptions],
    ),
    "Encoder": dict(
        layer_class=layers.Encoder,
        arguments={**LAYER, "num_layers": 2, "norm_first": True},
        inputs=[STATES],
        arguments_of=[layers.LayerOptions],
    ),
    "Decoder": dict(
        layer_class=layers.Decoder,
        arguments={**LAYER, "num_layers": 2, "norm_first": True},
        inputs=[STATES, MEMORY],
        arguments_of=[layers.LayerOptions],
    ),
    "Encoder of variants": dict(
        layer_class=layers.Encoder,
        arguments={**VARIANT, "num_layers": 2, "norm_first": True},
        inputs=[STATES],
        arguments_of=[layers.LayerOptions],
    ),
    "Decoder of variants": dict(
        layer_class=layers.Decoder,
        arguments={**VARIANT, "num_layers": 2, "norm_first": True},
        inputs=[STATES, MEMORY],
        arguments_of=[layers.LayerOptions],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_layer_keeps_the_contract(case, tmp_path):
    check_layer(folder=tmp_path, **CASES[case])


def test_no_layer_is_left_out():
    public = {
        getattr(layers, name)
        for name in layers.__all__
        if isinstance(getattr(layers, name), type)
        and issubclass(getattr(layers, name), keras.layers.Layer)
    }
    # Keras' own layer but for what it draws: see test_dropout.py.
    public.remove(layers.Dropout)
    assert public == {case["layer_class"] for case in CASES.values()}


def test_a_function_defined_anew_leaves_older_layers_as_they_are():
    """As when a cell of a notebook is run again."""
    register = keras.saving.register_keras_serializable("tests")
    first = register(defined_once_more())
    layer = layers.AddNorm(make_norm=first)
    second = register(defined_once_more())
    assert layer.get_config()["make_norm"] == "tests>again"
    assert layers.AddNorm.from_config(layer.get_config()).make_norm is second
    assert layers.AddNorm(make_norm=first).make_norm is first


def defined_once_more():
    def again(**arguments):
        return keras.layers.RMSNormalization(**arguments)

    return again
