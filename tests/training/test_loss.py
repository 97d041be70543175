import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import MaskedCrossEntropy
from keras_transformer.training import token_cross_entropy
from tests.support.backend import gradients, input_gradients
from tests.support.small_models import (
    random_batch,
    small_transformer,
    to_numpy,
)

LABELS = np.array([[5, 6, 2, 0, 0], [7, 8, 9, 6, 2]])
LOGITS = np.random.default_rng(0).normal(size=(2, 5, 11)).astype("float32")
REAL = LABELS != 0


def by_hand(labels, logits, smoothing=0.0):
    """Token losses from the definition, with the smoothed one-hot target."""
    size = logits.shape[-1]
    logits = logits.astype("float64")
    powers = np.exp(logits)
    log_probabilities = np.log(powers / powers.sum(-1, keepdims=True))
    targets = np.eye(size)[labels] * (1 - smoothing) + smoothing / size
    return -(targets * log_probabilities).sum(-1)


def loss_of(labels, logits, sample_weight=None, **arguments):
    loss = MaskedCrossEntropy(**arguments)
    return float(loss(np.array(labels), logits, sample_weight=sample_weight))


# === One token ===


def test_smoothing_is_spread_over_the_whole_vocabulary():
    logits = np.array([[[5.0, 0, 0, 0, 0]]], "float32")
    smoothed = loss_of([[0]], logits, pad_id=4, label_smoothing=0.1)
    assert smoothed == pytest.approx(0.426595, abs=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_token_losses_equal_the_definition(smoothing):
    losses = token_cross_entropy(LABELS, LOGITS, smoothing)
    np.testing.assert_allclose(
        to_numpy(losses), by_hand(LABELS, LOGITS, smoothing), rtol=1e-5
    )


def test_without_smoothing_it_is_the_plain_cross_entropy():
    expected = keras.losses.sparse_categorical_crossentropy(
        LABELS, LOGITS, from_logits=True
    )
    np.testing.assert_allclose(
        to_numpy(token_cross_entropy(LABELS, LOGITS)),
        to_numpy(expected),
        rtol=1e-5,
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_probabilities_give_the_loss_of_their_logits(smoothing):
    probabilities = to_numpy(ops.softmax(LOGITS))
    expected = loss_of(LABELS, LOGITS, label_smoothing=smoothing)
    assert loss_of(
        LABELS,
        probabilities,
        label_smoothing=smoothing,
        from_logits=False,
    ) == pytest.approx(expected, rel=1e-5)


def test_half_precision_logits_are_summed_in_float32():
    logits = np.full((1, 1, 20_011), 2.0, "float16")
    loss = loss_of([[5]], logits)
    assert loss == pytest.approx(np.log(20_011), rel=1e-6)


# === The mean over tokens ===


@pytest.mark.parametrize(
    "labels",
    [[[5, 2, 0, 0]], [[5, 6, 7, 2]], [[5, 2, 0, 0], [5, 6, 7, 2]]],
)
def test_uniform_logits_cost_the_log_of_the_vocabulary(labels):
    logits = np.zeros((len(labels), 4, 32), "float32")
    assert loss_of(labels, logits) == pytest.approx(3.465736, abs=1e-6)


def test_loss_is_the_mean_over_real_tokens():
    expected = by_hand(LABELS, LOGITS, 0.1)[REAL].sum() / REAL.sum()
    assert loss_of(LABELS, LOGITS, label_smoothing=0.1) == pytest.approx(
        expected, rel=1e-5
    )


def test_padding_may_hold_anything():
    logits = LOGITS.copy()
    logits[~REAL] = np.inf
    assert loss_of(LABELS, logits) == loss_of(LABELS, LOGITS)


def test_pad_id_is_what_the_argument_says():
    expected = by_hand(LABELS, LOGITS)[LABELS != 6].mean()
    assert loss_of(LABELS, LOGITS, pad_id=6) == pytest.approx(
        expected, rel=1e-5
    )


def test_batch_without_a_token_has_loss_zero_and_no_gradient():
    labels = np.zeros((2, 5), "int32")
    assert loss_of(labels, LOGITS, label_smoothing=0.1) == 0
    model = small_transformer(num_layers=1)
    inputs, _ = random_batch([3, 2], [5, 5])
    loss = MaskedCrossEntropy(0.1)
    value, found = gradients(
        lambda: loss(labels, model(inputs)), model.trainable_variables
    )
    assert value == 0
    for gradient in found:
        np.testing.assert_array_equal(gradient, 0)


def test_gradient_does_not_reach_the_logits_of_padding():
    loss = MaskedCrossEntropy(0.1)
    (gradient,) = input_gradients(lambda logits: loss(LABELS, logits), LOGITS)
    np.testing.assert_array_equal(gradient[~REAL], 0)
    assert np.all(gradient[REAL] != 0)


def test_keras_mask_on_the_predictions_is_not_averaged_again():
    embedding = keras.layers.Embedding(11, 11, mask_zero=True)
    masked = embedding(LABELS)
    expected = loss_of(LABELS, to_numpy(masked))
    assert loss_of(LABELS, masked) == pytest.approx(expected, rel=1e-6)


def test_labels_stay_whole_when_floats_are_half():
    logits = np.zeros((1, 1, 307), "float32")
    logits[0, 0, 301] = 9.0
    expected = loss_of([[301]], logits)
    before = keras.config.floatx()
    keras.config.set_floatx("bfloat16")
    try:
        found = loss_of([[301]], logits)
    finally:
        keras.config.set_floatx(before)
    assert found == pytest.approx(expected, rel=1e-6)
    assert found < 0.1


# === Weights ===


@pytest.mark.parametrize("shape", [(2,), (2, 5)])
def test_weights_of_one_change_nothing(shape):
    assert loss_of(LABELS, LOGITS, np.ones(shape)) == pytest.approx(
        loss_of(LABELS, LOGITS), rel=1e-6
    )


def test_row_weights_keep_the_number_of_tokens_below():
    # 3 + 5 real tokens, of which the first 3 count.
    expected = by_hand(LABELS, LOGITS)[0, :3].sum() / 8
    weighted = loss_of(LABELS, LOGITS, np.array([1.0, 0.0]))
    assert weighted == pytest.approx(expected, rel=1e-5)


def test_token_weights_multiply_each_token():
    weights = np.random.default_rng(1).uniform(size=(2, 5))
    losses = by_hand(LABELS, LOGITS) * weights
    assert loss_of(LABELS, LOGITS, weights) == pytest.approx(
        losses[REAL].sum() / 8, rel=1e-5
    )


def test_weight_on_padding_counts_nothing():
    heavy = np.where(REAL, 1.0, 1e6)
    assert loss_of(LABELS, LOGITS, heavy) == pytest.approx(
        loss_of(LABELS, LOGITS), rel=1e-6
    )


def test_row_weights_do_not_grow_with_the_length():
    labels = np.full((2, 100), 5)
    logits = np.zeros((2, 100, 11), "float32")
    loss = loss_of(labels, logits, np.ones(2))
    assert loss == pytest.approx(np.log(11), rel=1e-6)


# === Config ===


def test_config_gives_the_same_loss():
    loss = MaskedCrossEntropy(
        label_smoothing=0.1, pad_id=3, from_logits=False, name="mine"
    )
    copy = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(copy) is MaskedCrossEntropy
    assert copy.get_config() == loss.get_config()
    assert copy.name == "mine"
    assert (copy.label_smoothing, copy.pad_id) == (0.1, 3)
    assert copy.from_logits is False


def test_errors_name_what_does_not_fit():
    message = (
        "label_smoothing must be a number in [0, 1), got label_smoothing=1"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        MaskedCrossEntropy(label_smoothing=1)
    message = (
        "sample_weight must have shape (B,) or (B, T), got shape (2, 5, 1)"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        loss_of(LABELS, LOGITS, np.ones((2, 5, 1)))
