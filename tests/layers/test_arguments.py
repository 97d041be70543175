import re

import keras
import numpy as np
import pytest

from keras_transformer import layers
from keras_transformer.layers.arguments import check_positive, check_rate

LAYER = {"d_model": 12, "num_heads": 3, "d_ff": 13}


def refuses(message):
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8", np.float32(8)])
def test_size_must_be_a_positive_int(value):
    with refuses(f"d_ff must be a positive int, got d_ff={value!r}"):
        check_positive(d_model=7, d_ff=value)


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, "half", None, float("nan")])
def test_rate_must_lie_below_one(value):
    with refuses(f"dropout must be a number in [0, 1), got dropout={value!r}"):
        check_rate(dropout=value)


def test_good_arguments_pass():
    check_positive(d_model=1, d_k=None)
    check_rate(dropout=0, label_smoothing=0.999)


@pytest.mark.parametrize(
    ("layer_class", "arguments", "message"),
    [
        (
            layers.TokenEmbedding,
            {"vocab_size": 0, "d_model": 3},
            "vocab_size must be a positive int, got vocab_size=0",
        ),
        (
            layers.TokenEmbedding,
            {"vocab_size": 3, "d_model": -3},
            "d_model must be a positive int, got d_model=-3",
        ),
        (
            layers.MultiHeadAttention,
            {"d_model": 12, "num_heads": 0},
            "num_heads must be a positive int, got num_heads=0",
        ),
        (
            layers.MultiHeadAttention,
            {"d_model": 12, "num_heads": 3, "d_v": 0},
            "d_v must be a positive int, got d_v=0",
        ),
        (
            layers.MultiHeadAttention,
            {"d_model": 12, "num_heads": 5, "d_k": 2},
            "d_model must be a multiple of num_heads unless both d_k and d_v "
            "are given, got d_model=12, num_heads=5, d_k=2, d_v=None",
        ),
        (
            layers.MultiHeadAttention,
            {"d_model": 12, "num_heads": 3, "dropout": 1.0},
            "dropout must be a number in [0, 1), got dropout=1.0",
        ),
        (
            layers.FeedForward,
            {"d_model": 12, "d_ff": 0},
            "d_ff must be a positive int, got d_ff=0",
        ),
        (
            layers.FeedForward,
            {"d_model": 12, "d_ff": 7, "dropout": -1},
            "dropout must be a number in [0, 1), got dropout=-1",
        ),
        (
            layers.AddNorm,
            {"dropout": 2},
            "dropout must be a number in [0, 1), got dropout=2",
        ),
        (
            layers.EncoderLayer,
            {**LAYER, "d_k": -5},
            "d_k must be a positive int, got d_k=-5",
        ),
        (
            layers.DecoderLayer,
            {**LAYER, "d_ff": None, "d_k": 0},
            "d_k must be a positive int, got d_k=0",
        ),
        (
            layers.Encoder,
            {**LAYER, "num_layers": 0},
            "num_layers must be a positive int, got num_layers=0",
        ),
        (
            layers.Decoder,
            {**LAYER, "num_layers": 1.0},
            "num_layers must be a positive int, got num_layers=1.0",
        ),
        (
            layers.EncoderLayer,
            {**LAYER, "attention_dropout": 1},
            "attention_dropout must be a number in [0, 1), got "
            "attention_dropout=1",
        ),
        (
            layers.AddNorm,
            {"make_norm": 3},
            "make_norm must be a function registered with "
            "keras.saving.register_keras_serializable, so that a saved model "
            "can name it, got make_norm=3",
        ),
        (
            layers.Encoder,
            {**LAYER, "num_layers": 1, "make_norm": keras.layers.Dense},
            "make_norm must be a function registered with "
            "keras.saving.register_keras_serializable, so that a saved model "
            f"can name it, got make_norm={keras.layers.Dense!r}",
        ),
        (
            layers.DecoderLayer,
            {**LAYER, "rotate": min},
            "rotate must be a function registered with "
            "keras.saving.register_keras_serializable, so that a saved model "
            "can name it, got rotate=<built-in function min>",
        ),
        (
            layers.DecoderLayer,
            {**LAYER, "rotate": "mine>unheard"},
            "rotate='mine>unheard' is not registered; first import the "
            "module that registers it with "
            "keras.saving.register_keras_serializable",
        ),
    ],
)
def test_layers_name_the_argument_that_does_not_fit(
    layer_class, arguments, message
):
    with refuses(message):
        layer_class(**arguments)


@pytest.mark.parametrize("stack", [layers.Encoder, layers.Decoder])
def test_stack_refuses_an_argument_that_no_layer_has(stack):
    with pytest.raises((TypeError, ValueError), match="hidden_dim"):
        stack(num_layers=1, hidden_dim=3, **LAYER)


@pytest.mark.parametrize("stacked", [False, True])
def test_inputs_of_another_width_are_refused(stacked):
    message = (
        "inputs must have the width d_model=12, got inputs of shape (2, 3, 13)"
    )
    inputs = np.zeros((2, 3, 13), "float32")
    memory = np.zeros((2, 5, 12), "float32")
    if stacked:
        encoder = layers.Encoder(num_layers=1, **LAYER)
        decoder = layers.Decoder(num_layers=1, **LAYER)
    else:
        encoder = layers.EncoderLayer(**LAYER)
        decoder = layers.DecoderLayer(**LAYER)
    with pytest.raises(ValueError, match=re.escape(message)):
        encoder(inputs)
    with pytest.raises(ValueError, match=re.escape(message)):
        decoder(inputs, memory)
