"""Every layer runs through the same contract."""

import keras
import numpy as np
import pytest

from keras_transformer import layers
from tests.support.layer_contract import check_layer

STATES = np.random.default_rng(0).normal(size=(2, 3, 11)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(2, 5, 11)).astype("float32")
IDS = np.array([[5, 2, 0], [16, 7, 2]], "int32")
LAYER = {"d_model": 11, "num_heads": 3, "d_ff": 13, "d_k": 5, "d_v": 7}


@keras.saving.register_keras_serializable("tests")
def doubled(inputs):
    return inputs * 2


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
    "EncoderLayer": dict(
        layer_class=layers.EncoderLayer, arguments=LAYER, inputs=[STATES]
    ),
    "DecoderLayer": dict(
        layer_class=layers.DecoderLayer,
        arguments=LAYER,
        inputs=[STATES, MEMORY],
    ),
    "Encoder": dict(
        layer_class=layers.Encoder,
        arguments={**LAYER, "num_layers": 2, "norm_first": True},
        inputs=[STATES],
        arguments_of=[layers.EncoderLayer],
    ),
    "Decoder": dict(
        layer_class=layers.Decoder,
        arguments={**LAYER, "num_layers": 2, "norm_first": True},
        inputs=[STATES, MEMORY],
        arguments_of=[layers.DecoderLayer],
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
