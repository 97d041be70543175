import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import (
    Decoder,
    MultiHeadAttention,
    causal_mask,
    padding_mask,
)
from tests.layers.test_encoder import embedding_with_loud_padding
from tests.support.backend import compiled
from tests.support.small_models import difference, randomize, to_numpy

SIZES = {"d_model": 11, "num_heads": 3, "d_ff": 13, "d_k": 5, "d_v": 7}
SOURCE = np.array([[5, 6, 7, 2, 0, 0, 0], [8, 9, 10, 11, 12, 13, 2]])
STATES = np.random.default_rng(0).normal(size=(2, 4, 11)).astype("float32")
CHANGED = STATES.copy()
CHANGED[:, 3] = STATES[::-1, 0]


def decoder(norm_first=False, num_layers=3, **arguments):
    layer = Decoder(num_layers, norm_first=norm_first, **SIZES, **arguments)
    layer.build((None, None, 11), (None, None, 11))
    return randomize(layer)


@pytest.mark.parametrize("norm_first", [False, True])
def test_implicit_mask_on_the_memory_hides_its_padding(norm_first):
    embedding = embedding_with_loud_padding()
    layer = decoder(norm_first)
    implicit = layer(STATES, embedding(SOURCE))
    memory = ops.convert_to_tensor(to_numpy(embedding(SOURCE)))
    explicit = layer(STATES, memory, memory_attention_mask=padding_mask(SOURCE))
    assert difference(implicit, explicit) == 0
    by_keyword = layer(STATES, memory, memory_mask=SOURCE != 0)
    assert difference(by_keyword, explicit) == 0
    alone = layer(STATES[:1], memory[:1, :4])
    assert difference(implicit[:1], alone) < 1e-5
    assert difference(implicit, layer(STATES, memory)) > 1e-3


def test_implicit_mask_on_the_memory_works_in_a_functional_model():
    embedding = embedding_with_loud_padding()
    layer = decoder()
    ids = keras.Input((None,), dtype="int32")
    states = keras.Input((None, 11))
    model = keras.Model([states, ids], layer(states, embedding(ids)))
    expected = layer(STATES, embedding(SOURCE))
    outputs = model.predict([STATES, SOURCE], verbose=0)
    assert difference(outputs, expected) < 1e-5


def test_mask_on_the_inputs_does_not_hide_the_memory():
    targets = np.array([[1, 6, 0, 0], [1, 5, 7, 8]])
    embedding = embedding_with_loud_padding()
    layer = decoder()
    memory = embedding(SOURCE)
    masked = layer(embedding(targets), memory)
    plain = layer(ops.convert_to_tensor(to_numpy(embedding(targets))), memory)
    real = targets != 0
    assert difference(to_numpy(masked)[real], to_numpy(plain)[real]) == 0


def test_mask_on_the_inputs_hides_their_padding():
    targets = np.array([[0, 0, 1, 6], [1, 5, 7, 8]])
    embedding = embedding_with_loud_padding()
    layer = decoder()
    alone = layer(embedding(targets[:1, 2:]), embedding(SOURCE[:1]))
    masked = layer(embedding(targets), embedding(SOURCE))
    assert difference(masked[:1, 2:], alone) < 1e-5


@pytest.mark.parametrize("lengths", [(2, 7), (7, 2), (5, 5)])
def test_source_and_target_may_differ_in_length(lengths):
    target_length, source_length = lengths
    generator = np.random.default_rng(0)
    states = generator.normal(size=(2, target_length, 11)).astype("float32")
    memory = generator.normal(size=(2, source_length, 11)).astype("float32")
    mask = np.ones((2, 1, source_length), bool)
    mask[0, 0, -1] = False
    outputs = decoder()(states, memory, memory_attention_mask=mask)
    assert tuple(outputs.shape) == (2, target_length, 11)


def test_every_position_reads_the_last_source_position():
    layer = decoder()
    memory = np.random.default_rng(1).normal(size=(2, 7, 11))
    memory = memory.astype("float32")
    mask = padding_mask(SOURCE)
    outputs = to_numpy(layer(STATES, memory, memory_attention_mask=mask))
    last = memory.copy()
    last[0, 3] += 5
    changed = to_numpy(layer(STATES, last, memory_attention_mask=mask))
    assert np.all(np.abs(changed - outputs)[0].max(axis=-1) > 1e-4)
    assert difference(changed[1], outputs[1]) == 0
    hidden = memory.copy()
    hidden[0, 4:] += 5
    unchanged = layer(STATES, hidden, memory_attention_mask=mask)
    assert difference(unchanged, outputs) == 0


def test_attention_mask_adds_to_the_causal_one():
    layer = decoder()
    memory = np.zeros((2, 3, 11), "float32")
    no_first = np.arange(4)[None, None, :] > 0
    outputs = layer(STATES, memory, attention_mask=no_first)
    changed = STATES.copy()
    changed[:, 0] += 5
    replaced = layer(changed, memory, attention_mask=no_first)
    assert difference(outputs[:, 1:], replaced[:, 1:]) == 0
    future = layer(CHANGED, memory, attention_mask=no_first)
    assert difference(outputs[:, :3], future[:, :3]) == 0


@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize(
    ("norm_first", "jit"), [(False, False), (False, True), (True, False)]
)
def test_no_position_sees_the_future(norm_first, rate, jit):
    layer = decoder(
        norm_first,
        num_layers=1,
        dropout=rate,
        attention_dropout=rate,
        feed_forward_dropout=rate,
    )
    memory = np.random.default_rng(1).normal(size=(2, 5, 11))
    trainable = [v.value for v in layer.trainable_variables]
    # Holds the state of the random generators: equal states, equal draws.
    others = [v.value for v in layer.non_trainable_variables]
    assert len(others) == (0 if rate == 0 else 6)

    def run(states):
        outputs, _ = layer.stateless_call(
            trainable, others, states, memory.astype("float32"), training=True
        )
        return outputs

    run = compiled(run) if jit else run
    outputs, changed = to_numpy(run(STATES)), to_numpy(run(CHANGED))
    assert difference(outputs[:, :3], changed[:, :3]) == 0
    assert difference(outputs[:, 3], changed[:, 3]) > 1e-2
    if rate:
        inference = layer(STATES, memory.astype("float32"))
        assert difference(outputs, inference) > 1e-3


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_attention_keeps_the_causal_mask_on_every_path(
    rate, return_weights, jit
):
    layer = MultiHeadAttention(11, 3, d_k=5, d_v=7, dropout=rate)
    layer(STATES, STATES)
    randomize(layer)
    trainable = [v.value for v in layer.trainable_variables]
    others = [v.value for v in layer.non_trainable_variables]

    def run(states):
        outputs, _ = layer.stateless_call(
            trainable,
            others,
            states,
            states,
            attention_mask=causal_mask(4),
            return_weights=return_weights,
            training=True,
        )
        return outputs

    run = compiled(run) if jit else run
    outputs, changed = run(STATES), run(CHANGED)
    if return_weights:
        (outputs, weights), (changed, _) = outputs, changed
        future = np.triu(np.ones((4, 4), bool), k=1)
        assert np.all(to_numpy(weights)[..., future] == 0)
    assert difference(outputs[:, :3], changed[:, :3]) == 0
    assert difference(outputs[:, 3], changed[:, 3]) > 1e-2


def test_pre_norm_ends_in_one_more_norm():
    assert decoder(False).final_norm is None
    layer = decoder(True)
    layer.final_norm.gamma.assign(np.zeros(11))
    layer.final_norm.beta.assign(np.arange(11))
    outputs = layer(STATES, np.ones((2, 3, 11), "float32"))
    expected = np.broadcast_to(np.arange(11), (2, 4, 11))
    assert difference(outputs, expected) == 0
