"""`compile`, `fit`, `evaluate` and `train_on_batch` with our pieces."""

import keras
import numpy as np
import pytest

from keras_transformer import (
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
    TokenCrossEntropy,
    WarmupSchedule,
)
from tests.support.small_models import (
    random_batch,
    small_transformer,
    to_numpy,
)
from tests.support.training import (
    compile_model,
    fit,
    uniform_model,
    weight_difference,
)
from tests.training.test_loss import by_hand

UNIFORM = 3.465736  # ln 32


# === The loss that Keras reports ===


@pytest.mark.parametrize(
    "labels",
    [[[5, 2, 0, 0]], [[5, 6, 7, 2]], [[5, 2, 0, 0], [5, 6, 7, 2]]],
)
def test_every_entry_reports_the_loss_of_real_tokens(labels):
    labels = np.array(labels, "int32")
    still = keras.optimizers.SGD(0.0)
    model = compile_model(uniform_model(), still, few_steps=True)
    expected = pytest.approx(UNIFORM, abs=1e-5)
    assert fit(model, [(labels, labels)])["loss"][0] == expected
    assert model.evaluate(labels, labels, verbose=0) == expected
    assert float(model.train_on_batch(labels, labels)) == expected
    model.reset_metrics()
    assert float(model.test_on_batch(labels, labels)) == expected


def test_fit_and_evaluate_report_the_mean_over_tokens_of_unequal_rows():
    inputs, labels = random_batch([5, 3, 2], [4, 1, 7])
    model = small_transformer(num_layers=1)
    losses = by_hand(labels, to_numpy(model(inputs)), 0.1)
    expected = pytest.approx(losses[labels != 0].mean(), rel=1e-5)
    compile_model(model, keras.optimizers.SGD(0.0), MaskedCrossEntropy(0.1))
    assert fit(model, [(inputs, labels)])["loss"][0] == expected
    assert model.evaluate(inputs, labels, verbose=0) == expected


def test_metrics_of_an_epoch_are_exact_over_uneven_batches():
    batches = [
        random_batch([3], [1], seed=1),
        random_batch([2, 4, 3], [5, 2, 7], seed=2),
    ]
    model = small_transformer(num_layers=1)
    losses, right = [], []
    for inputs, labels in batches:
        logits, real = to_numpy(model(inputs)), labels != 0
        losses.extend(by_hand(labels, logits)[real])
        right.extend((logits.argmax(-1) == labels)[real])
    compile_model(
        model,
        keras.optimizers.SGD(0.0),
        MaskedCrossEntropy(0.1),
        metrics=[TokenCrossEntropy(), Perplexity(), TokenAccuracy()],
    )
    history = fit(model, batches)
    assert len(losses) == 1 + 14
    mean = pytest.approx(np.mean(losses), rel=1e-5)
    assert history["token_cross_entropy"][0] == mean
    perplexity = pytest.approx(np.exp(np.mean(losses)), rel=1e-4)
    assert history["perplexity"][0] == perplexity
    assert history["token_accuracy"][0] == pytest.approx(np.mean(right))


@pytest.mark.parametrize("shape", ["rows", "tokens"])
def test_sample_weight_reaches_the_loss(shape):
    labels = np.array([[5, 2, 0, 0], [5, 6, 7, 2]], "int32")
    weights = np.array([1.0, 0.0], "float32")
    if shape == "tokens":
        weights = np.repeat(weights[:, None], 4, axis=1)
    model = compile_model(
        uniform_model(), keras.optimizers.SGD(0.0), few_steps=True
    )
    history = fit(model, [(labels, labels, weights)])
    assert history["loss"][0] == pytest.approx(UNIFORM * 2 / 6, abs=1e-5)


def test_batch_without_a_token_moves_no_weight():
    inputs, labels = random_batch([3, 2], [5, 5])
    model = small_transformer(num_layers=1)
    before = model.get_weights()
    compile_model(model, few_steps=True)
    history = fit(model, [(inputs, np.zeros_like(labels))])
    assert history["loss"][0] == 0
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_one_step_with_a_source_of_padding_alone_is_finite():
    inputs = {
        "source_ids": np.array([[5, 6, 2], [0, 0, 0]], "int32"),
        "target_ids": np.array([[1, 7], [1, 8]], "int32"),
    }
    labels = np.array([[7, 2], [8, 2]], "int32")
    model = small_transformer(num_layers=1)
    before = model.get_weights()
    compile_model(model, few_steps=True)
    history = fit(model, [(inputs, labels)])
    assert np.isfinite(history["loss"][0])
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert any(
        np.any(old != new)
        for old, new in zip(before, model.get_weights(), strict=True)
    )


# === XLA ===


class TraceCounter(keras.callbacks.Callback):
    """Counts how often Python runs a function: once a trace, under XLA."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.traces = 0
        self.after_batch = []

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return self.function(*args, **kwargs)

    def on_train_batch_end(self, batch, logs=None):
        self.after_batch.append(self.traces)


def fit_three_lengths(jit_compile):
    batches = [
        random_batch([length, length - 2], [length - 1, length], seed=length)
        for length in (5, 9, 5)
    ]
    model = small_transformer(num_layers=1)
    counter = TraceCounter(model.decoder.finish)
    model.decoder.finish = counter
    compile_model(model, keras.optimizers.SGD(0.1), jit_compile=jit_compile)
    history = fit(model, batches, epochs=2, callbacks=[counter])
    return history["loss"], counter.after_batch


def test_xla_gives_the_same_loss_and_compiles_once_a_length():
    losses, traces = fit_three_lengths(jit_compile=True)
    expected, _ = fit_three_lengths(jit_compile=False)
    np.testing.assert_allclose(losses, expected, atol=1e-4)
    assert losses[1] < losses[0]
    # Both lengths have come after two batches of six; Keras itself may trace
    # once more, before the first, to build what is not built.
    assert 1 <= traces[1] <= 3
    assert traces[1:] == traces[1:2] * 5


# === Gradient accumulation ===


def test_weighted_micro_batches_equal_one_large_batch():
    # A large epsilon: where a gradient is 0 but for rounding, Adam's step
    # would follow the sign of the rounding.
    def adam(**arguments):
        return keras.optimizers.Adam(0.1, epsilon=1e-3, **arguments)

    inputs, labels = random_batch([5, 3, 4, 2], [1, 3, 7, 6])
    tokens = (labels != 0).sum()
    whole = compile_model(small_transformer(num_layers=1), adam())
    start = whole.get_weights()
    fit(whole, [(inputs, labels)] * 2)

    halves = []
    for rows in (slice(0, 2), slice(2, 4)):
        # The number of micro-batches times their share of the tokens.
        share = 2 * (labels[rows] != 0).sum() / tokens
        halves.append(
            (
                {name: ids[rows] for name, ids in inputs.items()},
                labels[rows],
                np.full(labels[rows].shape, share, "float32"),
            )
        )
    accumulated = compile_model(
        small_transformer(num_layers=1), adam(gradient_accumulation_steps=2)
    )
    fit(accumulated, halves * 2)
    assert weight_difference(whole.get_weights(), start) > 1e-2
    moved = weight_difference(whole.get_weights(), accumulated.get_weights())
    assert moved < 1e-5


# === Half precision ===


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_trains(dtype):
    inputs, labels = random_batch([5, 3, 4, 2], [1, 3, 7, 6])
    model = small_transformer(num_layers=1, dtype=dtype)
    compile_model(
        model,
        keras.optimizers.Adam(
            WarmupSchedule.from_peak(0.02, 11, 5), 0.9, 0.98, 1e-9
        ),
        MaskedCrossEntropy(0.1),
        metrics=[TokenAccuracy()],
    )
    history = fit(model, [(inputs, labels)], epochs=25)
    assert np.isfinite(history["loss"]).all()
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert {v.dtype for v in model.trainable_variables} == {"float32"}
