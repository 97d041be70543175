import keras
import numpy as np
import pytest

from keras_transformer import Perplexity, TokenAccuracy, TokenCrossEntropy
from tests.training.test_loss import by_hand

METRICS = (TokenCrossEntropy, Perplexity, TokenAccuracy)
VALUES = {
    TokenCrossEntropy: lambda losses, right: losses.mean(),
    Perplexity: lambda losses, right: np.exp(losses.mean()),
    TokenAccuracy: lambda losses, right: right.mean(),
}


def batches():
    """Batches of 1, 9 and 4 real tokens."""
    generator = np.random.default_rng(0)
    for labels in (
        [[5, 0, 0]],
        [[5, 6, 7, 8, 2], [7, 8, 9, 2, 0]],
        [[2, 0], [3, 2], [2, 0]],
    ):
        labels = np.array(labels)
        logits = generator.normal(size=(*labels.shape, 11))
        # Make about every second guess right.
        logits += (
            3
            * np.eye(11)[labels]
            * generator.integers(0, 2, (*labels.shape, 1))
        )
        yield labels, logits.astype("float32")


def tokens(pad_id=0):
    """Losses and hits of all real tokens, in one row each."""
    losses, right = [], []
    for labels, logits in batches():
        real = labels != pad_id
        losses.append(by_hand(labels, logits)[real])
        right.append((logits.argmax(-1) == labels)[real])
    return np.concatenate(losses), np.concatenate(right)


@pytest.mark.parametrize("metric_class", METRICS)
def test_metric_is_exact_over_uneven_batches(metric_class):
    metric = metric_class()
    for labels, logits in batches():
        metric.update_state(labels, logits)
    losses, right = tokens()
    assert len(losses) == 14
    assert 0 < right.mean() < 1
    expected = VALUES[metric_class](losses, right)
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("metric_class", METRICS)
def test_reset_forgets_everything(metric_class):
    metric = metric_class()
    (labels, logits), *_ = batches()
    empty = float(metric.result())
    metric.update_state(labels, logits)
    once = float(metric.result())
    metric.reset_state()
    assert float(metric.result()) == empty
    metric.update_state(labels, logits)
    assert float(metric.result()) == once


@pytest.mark.parametrize("metric_class", METRICS)
def test_batch_without_a_token_changes_nothing(metric_class):
    metric = metric_class()
    for labels, logits in batches():
        metric.update_state(labels, logits)
    before = float(metric.result())
    metric.update_state(np.zeros((2, 3), int), np.full((2, 3, 11), np.inf))
    assert float(metric.result()) == before


@pytest.mark.parametrize("metric_class", METRICS)
def test_pad_id_is_what_the_argument_says(metric_class):
    metric = metric_class(pad_id=2)
    for labels, logits in batches():
        metric.update_state(labels, logits)
    expected = VALUES[metric_class](*tokens(pad_id=2))
    assert float(metric.result()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("metric_class", METRICS)
def test_weights_of_rows_and_of_tokens_count(metric_class):
    _, (labels, logits), _ = batches()
    by_row, by_token, alone = metric_class(), metric_class(), metric_class()
    by_row.update_state(labels, logits, sample_weight=np.array([0.0, 2.0]))
    weights = np.array([[0.0] * 5, [2.0] * 5])
    by_token.update_state(labels, logits, sample_weight=weights)
    alone.update_state(labels[1:], logits[1:])
    expected = pytest.approx(float(alone.result()), rel=1e-6)
    assert float(by_row.result()) == expected
    assert float(by_token.result()) == expected


def test_perplexity_of_uniform_logits_is_the_vocabulary():
    metric = Perplexity()
    metric.update_state(np.array([[5, 2, 0]]), np.zeros((1, 3, 11)))
    assert float(metric.result()) == pytest.approx(11, rel=1e-5)


def test_cross_entropy_is_zero_before_any_token():
    assert float(TokenCrossEntropy().result()) == 0


@pytest.mark.parametrize("metric_class", METRICS)
def test_config_gives_the_same_metric(metric_class):
    metric = metric_class(pad_id=3, name="mine")
    copy = keras.metrics.deserialize(keras.metrics.serialize(metric))
    assert type(copy) is metric_class
    assert copy.get_config() == metric.get_config()
    assert (copy.pad_id, copy.name) == (3, "mine")


def test_names_are_what_the_history_shows():
    names = [metric_class().name for metric_class in METRICS]
    assert names == ["token_cross_entropy", "perplexity", "token_accuracy"]
