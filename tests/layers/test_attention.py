import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import (
    MultiHeadAttention,
    Step,
    causal_mask,
    scaled_dot_product_attention,
)
from tests.support.backend import all_finite, gradients, input_gradients
from tests.support.numpy_transformer import NumpyTransformer
from tests.support.small_models import difference, randomize, to_numpy

QUERY = np.random.default_rng(0).normal(size=(2, 3, 11)).astype("float32")
VALUE = np.random.default_rng(1).normal(size=(2, 5, 13)).astype("float32")
KEY = np.random.default_rng(2).normal(size=(2, 5, 17)).astype("float32")
SIZES = {"d_model": 11, "num_heads": 3, "d_k": 5, "d_v": 7}


def built(**arguments):
    layer = MultiHeadAttention(**{**SIZES, **arguments})
    layer(QUERY, VALUE, KEY)
    return randomize(layer)


class NumpyAttention(NumpyTransformer):
    def __init__(self, config):
        self.config = config


def test_worked_example_reads_four_one_and_five_tenths():
    # Keys whose scores, over sqrt(d_k) = 2, are the logs of the weights.
    query = np.array([[[[2.0, 0, 0, 0]]]], "float32")
    key = np.zeros((1, 1, 3, 4), "float32")
    key[..., 0] = np.log([0.4, 0.1, 0.5])
    value = np.array([[[[10.0, 0], [0, 10.0], [4.0, 2.0]]]], "float32")
    outputs, weights = scaled_dot_product_attention(
        query, key, value, return_weights=True
    )
    np.testing.assert_allclose(to_numpy(weights)[0, 0, 0], [0.4, 0.1, 0.5])
    np.testing.assert_allclose(
        to_numpy(outputs)[0, 0, 0], [4 + 2, 1 + 1], rtol=1e-6
    )


def test_heads_equal_the_formula_one_query_at_a_time():
    layer = built()
    reference = NumpyAttention(SIZES)
    outputs = to_numpy(layer(QUERY, VALUE, KEY))
    for row in range(2):
        for position in range(3):
            expected = reference.attend(
                layer,
                QUERY[row, position],
                list(VALUE[row]),
                list(KEY[row]),
            )
            assert difference(outputs[row, position], expected) < 1e-5


def test_key_is_the_value_unless_given():
    layer = MultiHeadAttention(**SIZES)
    layer(QUERY, VALUE)
    randomize(layer)
    assert difference(layer(QUERY, VALUE), layer(QUERY, VALUE, VALUE)) == 0


def test_masked_values_do_not_matter():
    layer = built()
    mask = np.array([[[True, True, True, False, False]]])
    masked = layer(QUERY, VALUE, KEY, attention_mask=mask)
    cut = layer(QUERY, VALUE[:, :3], KEY[:, :3])
    assert difference(masked, cut) < 1e-6
    other = VALUE.copy()
    other[:, 3:] = 1e3
    replaced = layer(QUERY, other, KEY, attention_mask=mask)
    assert difference(masked, replaced) == 0


def test_weights_sum_to_one_where_something_is_visible():
    layer = built()
    mask = np.ones((2, 3, 5), bool)
    mask[0, 1] = False
    mask[1, :, 3:] = False
    outputs, weights = layer(
        QUERY, VALUE, KEY, attention_mask=mask, return_weights=True
    )
    assert tuple(outputs.shape) == (2, 3, 11)
    assert tuple(weights.shape) == (2, 3, 3, 5)
    sums = to_numpy(weights).sum(-1)
    np.testing.assert_allclose(np.delete(sums[0], 1, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(sums[1], 1, rtol=1e-6)
    np.testing.assert_array_equal(sums[0, :, 1], 0)
    np.testing.assert_array_equal(to_numpy(weights)[1, ..., 3:], 0)


def test_returning_the_weights_changes_no_output():
    layer = built()
    mask = causal_mask(5)[:, 2:]
    outputs, _ = layer(
        QUERY, VALUE, KEY, attention_mask=mask, return_weights=True
    )
    plain = layer(QUERY, VALUE, KEY, attention_mask=mask)
    assert difference(plain, outputs) == 0


def test_query_that_sees_nothing_gets_zeros_and_zero_gradients():
    generator = np.random.default_rng(5)
    query, key, value = [
        generator.normal(size=(1, 2, 3, width)).astype("float32")
        for width in (5, 5, 7)
    ]
    mask = np.array([[[True, True, False], [False] * 3, [True] * 3]])

    def second_row(*tensors):
        outputs = scaled_dot_product_attention(*tensors, mask)
        return ops.sum(outputs[:, :, 1] ** 2 + outputs[:, :, 1])

    outputs = to_numpy(scaled_dot_product_attention(query, key, value, mask))
    np.testing.assert_array_equal(outputs[:, :, 1], 0)
    assert np.all(outputs[:, :, [0, 2]] != 0)
    for gradient in input_gradients(second_row, query, key, value):
        np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize(
    "dtype", ["float32", "mixed_float16", "mixed_bfloat16"]
)
def test_batch_with_a_fully_masked_row_has_finite_gradients(dtype):
    layer = built(dtype=dtype)
    mask = np.ones((2, 1, 5), bool)
    mask[1] = False
    _, found = gradients(
        lambda: ops.sum(
            ops.cast(layer(QUERY, VALUE, KEY, attention_mask=mask), "float32")
        ),
        layer.trainable_variables,
    )
    assert all_finite(found)
    outputs = layer(QUERY, VALUE, KEY, attention_mask=mask)
    bias = ops.cast(layer.output_projection.bias, outputs.dtype)
    assert difference(outputs[1], ops.broadcast_to(bias, (3, 11))) == 0


def test_weights_in_half_precision_are_right_to_the_last_bit():
    # Scores that bfloat16 holds exactly: all that is lost is the rounding of
    # the result.
    scores = np.arange(-64, 64, dtype="float32").reshape(1, 1, 128, 1) / 16
    key = ops.cast(scores, "bfloat16")
    query = ops.ones((1, 1, 1, 1), "bfloat16")
    _, weights = scaled_dot_product_attention(
        query, key, key, return_weights=True
    )
    assert keras.backend.standardize_dtype(weights.dtype) == "bfloat16"
    powers = np.exp(scores.ravel().astype("float64"))
    expected = powers / powers.sum()
    found = to_numpy(ops.cast(weights, "float32")).ravel()
    assert np.abs(found / expected - 1).max() < 2**-8 * 1.01


def test_hidden_keys_get_nothing_beside_very_low_scores():
    query = np.array([[[[100.0]]]], "float32")
    key = np.array([[[[-100.0], [-101.0], [0.0]]]], "float32")
    mask = np.array([[[True, True, False]]])
    _, weights = scaled_dot_product_attention(
        query, key, key, mask, return_weights=True
    )
    np.testing.assert_allclose(to_numpy(weights)[0, 0, 0], [1, 0, 0])


def test_dropout_falls_on_the_weights_when_training():
    layer = built(dropout=0.5)
    _, kept = layer(QUERY, VALUE, KEY, return_weights=True)
    _, dropped = layer(QUERY, VALUE, KEY, return_weights=True, training=True)
    ratio = to_numpy(dropped) / to_numpy(kept)
    assert set(np.round(ratio, 3).ravel()) == {0.0, 2.0}


def test_widths_of_heads_default_to_a_share_of_the_width():
    layer = MultiHeadAttention(d_model=15, num_heads=3, d_v=7)
    layer(np.zeros((1, 2, 15), "float32"), np.zeros((1, 3, 15), "float32"))
    assert (layer.d_k, layer.d_v) == (5, 7)
    assert layer.get_config()["d_k"] == 5
    expected = 2 * (15 * 15 + 15) + (15 * 21 + 21) + (21 * 15 + 15)
    assert layer.count_params() == expected


def test_without_bias_there_are_four_matrices():
    layer = built(use_bias=False)
    shapes = [tuple(weight.shape) for weight in layer.weights]
    assert shapes == [(11, 15), (17, 15), (13, 21), (21, 11)]


def test_keras_mask_on_the_value_hides_it():
    embedding = keras.layers.Embedding(17, 13, mask_zero=True)
    ids = np.array([[5, 6, 2, 0, 0], [5, 6, 7, 8, 2]])
    values = embedding(ids)
    layer = MultiHeadAttention(**SIZES)
    implicit = layer(QUERY, values)
    plain = ops.convert_to_tensor(to_numpy(values))
    explicit = layer(QUERY, plain, attention_mask=(ids != 0)[:, None])
    assert difference(implicit, explicit) == 0
    assert difference(implicit, layer(QUERY, plain)) > 1e-3
    first_only = np.array([[[True, False, False, False, True]]])
    both = layer(QUERY, values, attention_mask=first_only)
    visible = (ids != 0)[:, None] & first_only
    assert difference(both, layer(QUERY, plain, attention_mask=visible)) == 0


@keras.saving.register_keras_serializable("tests")
def shifted(states, positions):
    """Adds the position to everything, so that it can be read off."""
    return states + ops.expand_dims(ops.cast(positions, states.dtype), -1)


def test_rotation_is_told_the_positions_of_queries_and_keys():
    plain, layer = built(), built(rotate=shifted)
    heads = plain.project(VALUE, KEY)
    rotated = layer.project(VALUE, KEY)
    expected = to_numpy(heads.keys) + np.arange(5)[:, None]
    assert difference(rotated.keys, expected) < 1e-6
    assert difference(rotated.values, heads.values) == 0

    one = layer.project(VALUE[:, 0], KEY[:, 0], step=Step(7))
    expected = to_numpy(heads.keys)[:, :, :1] + 7
    assert difference(one.keys, expected) < 1e-5

    query = to_numpy(ops.split(layer.query_projection(QUERY), 3, axis=-1)[2])
    query += np.arange(3)[:, None]
    scores = query @ to_numpy(rotated.keys)[:, 2].swapaxes(1, 2) / 5**0.5
    _, weights = layer(QUERY, VALUE, KEY, return_weights=True)
    expected = ops.softmax(ops.convert_to_tensor(scores))
    assert difference(to_numpy(weights)[:, 2], expected) < 1e-5


def test_a_step_of_several_hypotheses_equals_a_whole_sequence():
    """Under a lineage that hides nothing, row `b * K + k` is query `k`."""
    layer = built()
    whole, weights = layer.attend(QUERY, layer.project(VALUE, KEY))
    step = Step(0, 2, np.zeros((2, 3, 5), "float32"))
    rows = layer.project(VALUE.reshape(10, 13), KEY.reshape(10, 17), step)
    outputs, found = layer.attend(QUERY.reshape(6, 11), rows, step=step)
    assert difference(outputs, to_numpy(whole).reshape(6, 11)) < 1e-6
    assert difference(found, weights) < 1e-6
