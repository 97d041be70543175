import inspect
import itertools
import json
import re

import keras
import numpy as np
import pytest

from keras_transformer import BASE, BIG, TINY, Transformer
from keras_transformer.layers import LayerOptions, positional_encoding
from keras_transformer.transformer import TYING_MODES
from tests.support.backend import all_finite, compiled, gradients
from tests.support.numpy_transformer import NumpyTransformer
from tests.support.small_models import (
    SIZES,
    VOCAB_SIZE,
    difference,
    random_ids,
    shared_transformer,
    small_transformer,
    to_numpy,
)
from tests.support.variants import VARIANT

SOURCE = random_ids([5, 3, 7])
TARGET = random_ids([2, 4, 3], seed=1)


def feed(source, target):
    return {
        "source_ids": np.asarray(source, "int32"),
        "target_ids": np.asarray(target, "int32"),
    }


# === The paper ===


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("tying", TYING_MODES)
def test_logits_equal_the_numpy_reference(tying, norm_first):
    model = shared_transformer(
        tying=tying,
        norm_first=norm_first,
        output_bias=norm_first,
        target_vocab_size=None if tying == "all" else 13,
    )
    target = np.minimum(TARGET, 12)
    logits = to_numpy(model(feed(SOURCE, target)))
    assert logits.shape == (3, 4, VOCAB_SIZE if tying == "all" else 13)
    expected = NumpyTransformer(model).logits(SOURCE, target)
    assert difference(logits, expected) < 1e-5


@pytest.mark.parametrize("tying", TYING_MODES)
def test_logits_equal_the_numpy_reference_at_even_sizes(tying):
    model = shared_transformer(
        tying=tying, d_model=12, d_k=None, d_v=None, output_bias=True
    )
    logits = model(feed(SOURCE, TARGET))
    expected = NumpyTransformer(model).logits(SOURCE, TARGET)
    assert difference(logits, expected) < 1e-5


def test_other_special_ids_equal_the_numpy_reference():
    model = small_transformer(pad_id=3, bos_id=2, eos_id=1, unk_id=0)
    source = np.array([[5, 0, 1, 3, 3], [0, 7, 8, 9, 1]])
    target = np.array([[2, 0, 6], [2, 8, 9]])
    logits = model(feed(source, target))
    expected = NumpyTransformer(model).logits(source, target)
    assert difference(logits, expected) < 1e-5
    other = np.array([[5, 4, 1, 3, 3], [4, 7, 8, 9, 1]])
    assert difference(model(feed(other, target)), logits) > 1e-3


@pytest.mark.parametrize("tying", TYING_MODES)
def test_embeddings_are_scaled_and_projections_are_not(tying):
    model = shared_transformer(tying=tying, d_model=64)
    waves = to_numpy(positional_encoding(np.arange(4), 64))
    for embedding in (model.source_embedding, model.target_embedding):
        table = to_numpy(embedding.embeddings)
        vectors = model.embed(TARGET, embedding)
        assert difference(vectors, table[TARGET] * 8 + waves) < 1e-5
    states = np.random.default_rng(0).normal(size=(2, 3, 64))
    matrix = to_numpy(model.target_embedding.embeddings).T
    if tying == "none":
        matrix = to_numpy(model.output_projection.kernel)
    logits = model.project(states.astype("float32"))
    assert difference(logits, states @ matrix) < 1e-5


def test_tied_matrices_are_one():
    everything = shared_transformer()
    assert everything.source_embedding is everything.target_embedding
    assert everything.output_projection is None
    target = shared_transformer(tying="target")
    assert target.source_embedding is not target.target_embedding
    assert target.output_projection is None
    none = shared_transformer(tying="none")
    assert none.source_embedding is not none.target_embedding
    assert none.output_projection is not None


# === Sizes ===


def parameters(
    source_vocab_size,
    target_vocab_size,
    num_layers,
    d_model,
    num_heads,
    d_ff,
    d_k=None,
    d_v=None,
    norm_first=False,
    tying="all",
    output_bias=False,
    dropout=0.0,
):
    keys = num_heads * (d_k or d_model // num_heads)
    values = num_heads * (d_v or d_model // num_heads)
    attention = 2 * (d_model + 1) * keys + (d_model + 1) * values
    attention += (values + 1) * d_model
    feed_forward = (d_model + 1) * d_ff + (d_ff + 1) * d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    matrices = {
        "all": target_vocab_size,
        "target": source_vocab_size + target_vocab_size,
        "none": source_vocab_size + 2 * target_vocab_size,
    }
    return (
        matrices[tying] * d_model
        + output_bias * target_vocab_size
        + num_layers * (encoder_layer + decoder_layer)
        + norm_first * 2 * norm
    )


@pytest.mark.parametrize(
    ("tying", "output_bias", "norm_first", "widths"),
    list(
        itertools.product(
            TYING_MODES, [False, True], [False, True], [(None, None), (5, 7)]
        )
    ),
)
def test_parameters_equal_the_formula(tying, output_bias, norm_first, widths):
    arguments = {
        "source_vocab_size": 17,
        "target_vocab_size": 17 if tying == "all" else 19,
        "num_layers": 1,
        "d_model": 12,
        "num_heads": 3,
        "d_ff": 13,
        "d_k": widths[0],
        "d_v": widths[1],
        "norm_first": norm_first,
        "tying": tying,
        "output_bias": output_bias,
    }
    model = Transformer(**arguments)
    assert model.count_params() == parameters(**arguments)
    trainable = sum(
        int(np.prod(weight.shape)) for weight in model.trainable_weights
    )
    assert trainable == model.count_params()


def test_sizes_of_the_paper_have_the_parameters_of_the_paper():
    base = Transformer(37_000, **BASE).count_params()
    assert base == 63_082_496
    assert base == parameters(37_000, 37_000, **BASE)
    keras.backend.clear_session()
    big = Transformer(37_000, **BIG).count_params()
    assert big == 214_245_376
    assert big == parameters(37_000, 37_000, **BIG)


def test_sizes_are_those_of_table_three():
    rows = [
        [size[name] for name in ("num_layers", "d_model", "num_heads", "d_ff")]
        for size in (BASE, BIG)
    ]
    assert rows == [[6, 512, 8, 2048], [6, 1024, 16, 4096]]
    assert (BASE["dropout"], BIG["dropout"]) == (0.1, 0.3)
    model = Transformer(97, **{**TINY, "num_layers": 3})
    expected = parameters(97, 97, **{**TINY, "num_layers": 3})
    assert model.count_params() == expected


# === Padding and the future ===


@pytest.mark.parametrize("norm_first", [False, True])
def test_padding_does_not_matter_through_three_layers(norm_first):
    # Untied, so that the row of id 0 speaks as a source word only.
    model = small_transformer(tying="none", num_layers=3, norm_first=norm_first)
    target = [[1, 5, 6, 7]]
    alone = model(feed([[5, 6, 7, 2]], target))
    padded = [[5, 6, 7, 2, 0, 0, 0, 0]]
    assert difference(alone, model(feed(padded, target))) < 1e-5
    table = to_numpy(model.source_embedding.embeddings).copy()
    table[0] = 1e3
    model.source_embedding.embeddings.assign(table)
    assert difference(alone, model(feed(padded, target))) < 1e-5


def test_every_target_position_reads_the_last_source_token():
    model = shared_transformer()
    source = np.array([[5, 6, 7, 2, 0, 0, 0, 0, 0]])
    target = [[1, 5, 6, 7, 8, 9]]
    logits = to_numpy(model(feed(source, target)))
    source[0, 3] = 11
    changed = to_numpy(model(feed(source, target)))
    assert np.all(np.abs(changed - logits)[0].max(axis=-1) > 1e-4)


def test_ids_under_a_hidden_position_do_not_matter():
    model = shared_transformer()
    mask = np.array([[[True] * 4 + [False] * 5]])
    target = model.embed(np.array([[1, 5, 6]]), model.target_embedding)

    def states(ids):
        vectors = model.embed(np.array([ids]), model.source_embedding)
        memory = model.encoder(vectors, attention_mask=mask)
        return model.decoder(target, memory, memory_attention_mask=mask)

    first = states([5, 6, 7, 2, 0, 0, 0, 0, 0])
    second = states([5, 6, 7, 2, 8, 9, 3, 1, 2])
    assert difference(first, second) == 0


@pytest.mark.parametrize("lengths", [(7, 2), (2, 7)])
def test_source_and_target_may_differ_in_length(lengths):
    source_length, target_length = lengths
    source = random_ids([source_length, 1], width=source_length)
    target = random_ids([target_length, 1], width=target_length)
    logits = shared_transformer()(feed(source, target))
    assert tuple(logits.shape) == (2, target_length, VOCAB_SIZE)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.1])
def test_no_logit_sees_the_future(rate, jit):
    model = small_transformer(
        num_layers=1, dropout=rate, attention_dropout=rate
    )
    trainable = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]

    def run(source_ids, target_ids):
        logits, _ = model.stateless_call(
            trainable, others, feed_as_is(source_ids, target_ids), training=True
        )
        return logits

    run = compiled(run) if jit else run
    source = np.array([[5, 6, 2]], "int32")
    first = to_numpy(run(source, np.array([[1, 5, 6, 7]], "int32")))
    second = to_numpy(run(source, np.array([[1, 5, 6, 9]], "int32")))
    assert difference(first[:, :3], second[:, :3]) == 0
    assert difference(first[:, 3], second[:, 3]) > 1e-2


def feed_as_is(source_ids, target_ids):
    return {"source_ids": source_ids, "target_ids": target_ids}


def test_sentence_of_padding_alone_spoils_nothing():
    model = shared_transformer(norm_first=True)
    source = np.array([[5, 6, 2], [0, 0, 0]])
    target = np.array([[1, 5, 6, 7], [1, 8, 9, 10]])
    logits = model(feed(source, target))
    alone = model(feed(source[:1], target[:1]))
    assert difference(logits[:1], alone) < 1e-5
    loss, found = gradients(
        lambda: keras.ops.mean(model(feed(source, target)) ** 2),
        model.trainable_variables,
    )
    assert np.isfinite(loss)
    assert all_finite(found)


def test_dropout_acts_when_training_only():
    model = shared_transformer(dropout=0.5)
    inputs = feed(SOURCE, TARGET)
    inference = model(inputs)
    assert difference(inference, model(inputs, training=False)) == 0
    assert difference(inference, shared_transformer()(inputs)) == 0
    assert difference(inference, model(inputs, training=True)) > 1e-2


def test_dropout_falls_on_the_sum_of_embedding_and_positions():
    model = shared_transformer(dropout=0.5)
    assert model.embedding_dropout.rate == 0.5
    ids = keras.Input((None,), dtype="int32")
    embed = keras.Model(ids, model.embed(ids, model.target_embedding))
    kept, dropped = embed(TARGET), embed(TARGET, training=True)
    ratio = np.round(to_numpy(dropped) / to_numpy(kept), 3)
    assert set(ratio.ravel()) == {0.0, 2.0}


# === Variants ===


def test_rotation_takes_the_place_of_the_waves():
    model = shared_transformer(**VARIANT)
    table = to_numpy(model.target_embedding.embeddings)
    for start in (0, 7):
        vectors = model.embed(TARGET, model.target_embedding, start)
        assert difference(vectors, table[TARGET] * 11**0.5) < 1e-6
    # And tells order: words of the source and of the prefix change places.
    logits = to_numpy(model(feed([[5, 6, 7, 2]], [[1, 8, 9, 10]])))
    source = model(feed([[7, 6, 5, 2]], [[1, 8, 9, 10]]))
    target = model(feed([[5, 6, 7, 2]], [[1, 9, 8, 10]]))
    assert difference(source, logits) > 1e-3
    assert difference(to_numpy(target)[:, 3], logits[:, 3]) > 1e-3


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_norm_of_ones_own_is_every_norm(norm_first):
    model = small_transformer(**VARIANT, norm_first=norm_first)
    norms = [
        layer
        for layer in model._flatten_layers()
        if type(layer).__name__.endswith("Normalization")
    ]
    assert {type(each) for each in norms} == {keras.layers.RMSNormalization}
    assert len(norms) == 2 * (2 + 3) + 2 * norm_first


@pytest.mark.parametrize("form", ["config", "file"])
def test_variant_is_the_same_when_loaded(form, tmp_path):
    model = shared_transformer(**VARIANT, norm_first=True)
    config = json.loads(json.dumps(model.get_config()))
    assert (config["make_norm"], config["rotate"]) == (
        "mine>rms_norm",
        "mine>rotary",
    )
    if form == "file":
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
    else:
        loaded = Transformer.from_config(config)
        loaded.set_weights(model.get_weights())
    inputs = feed(SOURCE, TARGET)
    assert difference(loaded(inputs), model(inputs)) == 0


# === Vocabularies ===


def test_two_vocabularies_of_one_size_are_two():
    assert shared_transformer().get_config()["tying"] == "all"
    two = shared_transformer(target_vocab_size=VOCAB_SIZE)
    assert two.get_config()["tying"] == "target"
    assert two.source_embedding is not two.target_embedding
    asked = shared_transformer(target_vocab_size=VOCAB_SIZE, tying="all")
    assert asked.source_embedding is asked.target_embedding
    assert Transformer.from_config(asked.get_config()).count_params() == (
        asked.count_params()
    )


# === Config ===


def test_config_holds_every_argument():
    arguments = {
        "source_vocab_size": 17,
        "target_vocab_size": 19,
        **SIZES,
        "dropout": 0.2,
        "attention_dropout": 0.3,
        "feed_forward_dropout": 0.4,
        "activation": "gelu",
        "norm_first": True,
        "epsilon": 1e-3,
        "tying": "target",
        "output_bias": True,
        "pad_id": 3,
        "bos_id": 2,
        "eos_id": 1,
        "unk_id": 0,
        "name": "small",
        "trainable": True,
    }
    config = Transformer(**arguments, dtype="mixed_float16").get_config()
    names = {
        *inspect.signature(Transformer).parameters,
        *inspect.signature(LayerOptions).parameters,
    }
    assert set(config) == names - {"options", "make_norm", "rotate"}
    assert {name: config[name] for name in arguments} == arguments

    copy = Transformer.from_config(config)
    assert copy.get_config() == config
    assert copy.dtype_policy.name == "mixed_float16"
    logits = copy(feed(SOURCE, TARGET))
    assert keras.backend.standardize_dtype(logits.dtype) == "float16"


@pytest.mark.parametrize("tying", TYING_MODES)
def test_saved_model_is_the_same_when_loaded(tying, tmp_path):
    model = shared_transformer(tying=tying, output_bias=True, norm_first=True)
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert type(loaded) is Transformer
    assert loaded.get_config() == model.get_config()
    inputs = feed(SOURCE, TARGET)
    assert difference(loaded(inputs), model(inputs)) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"tying": "both"},
            "tying must be one of ('all', 'target', 'none'), got tying='both'",
        ),
        (
            {"target_vocab_size": 19, "tying": "all"},
            'tying="all" needs one vocabulary, got source_vocab_size=17, '
            'target_vocab_size=19; use tying="target" or tying="none"',
        ),
        (
            {"source_vocab_size": 0},
            "source_vocab_size must be a positive int, got source_vocab_size=0",
        ),
        (
            {"target_vocab_size": 0, "tying": "none"},
            "target_vocab_size must be a positive int, got target_vocab_size=0",
        ),
        (
            {"pad_id": 17},
            "pad_id must be an id of the vocabulary, an int in [0, 17), "
            "got pad_id=17",
        ),
        (
            {"target_vocab_size": 5, "tying": "none", "unk_id": 5},
            "unk_id must be an id of the vocabulary, an int in [0, 5), "
            "got unk_id=5",
        ),
        (
            {"eos_id": None},
            "eos_id must be an id of the vocabulary, an int in [0, 17), "
            "got eos_id=None",
        ),
        (
            {"bos_id": 2},
            "special ids must differ from each other, got {'pad_id': 0, "
            "'bos_id': 2, 'eos_id': 2, 'unk_id': 3}",
        ),
        (
            {"num_layers": 0},
            "num_layers must be a positive int, got num_layers=0",
        ),
        (
            {"d_k": None},
            "d_model must be a multiple of num_heads unless both d_k and d_v "
            "are given, got d_model=11, num_heads=3, d_k=None, d_v=7",
        ),
        (
            {"dropout": 1.0},
            "dropout must be a number in [0, 1), got dropout=1.0",
        ),
        (
            {"attention_dropout": -0.5},
            "attention_dropout must be a number in [0, 1), got "
            "attention_dropout=-0.5",
        ),
        (
            {"rotate": "mine>other"},
            "rotate='mine>other' is not registered; first import the module "
            "that registers it with keras.saving.register_keras_serializable",
        ),
    ],
)
def test_error_names_the_argument_that_does_not_fit(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        small_transformer(**changes)
