"""Divergence and speed, as `fit` reports them."""

import keras
import numpy as np
import pytest

from keras_transformer.training import StopWhenDiverged, TokensPerSecond
from tests.support.training import compile_model, fit, uniform_model


def batches(count):
    generator = np.random.default_rng(8)
    return [
        tuple(generator.integers(0, 32, (4, 5)) for _ in range(2))
        for _ in range(count)
    ]


class Spoil(keras.callbacks.Callback):
    """Makes a weight infinite as a batch begins or an epoch ends."""

    def __init__(self, batch=None):
        super().__init__()
        self.batch = batch

    def spoil(self):
        weights = self.model.get_weights()
        weights[0][0] = np.inf
        self.model.set_weights(weights)

    def on_train_batch_begin(self, batch, logs=None):
        if batch == self.batch:
            self.spoil()

    def on_epoch_end(self, epoch, logs=None):
        if self.batch is None:
            self.spoil()


def test_a_loss_that_is_no_number_ends_fit_and_names_the_batch():
    model = compile_model(uniform_model())
    data = batches(5)
    data[2][0][0, 0] = 0  # The id whose embedding is spoilt.
    guard = StopWhenDiverged(
        lambda batch, epoch: f"number {batch} of {epoch}", lambda: "do this"
    )
    with pytest.raises(
        ValueError,
        match=r"^the training diverged: the loss became (nan|inf) at update 3 "
        r"\(batch 3 of epoch 1: number 2 of 0\); expected finite numbers; try "
        "a lower learning rate or a longer warmup; do this$",
    ):
        fit(model, data, epochs=2, callbacks=[Spoil(2), guard])


def test_weights_that_are_no_numbers_are_found_before_a_checkpoint():
    model = compile_model(uniform_model())
    saved = []
    saving = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: saved.append(epoch)
    )
    with pytest.raises(ValueError, match="is not finite after 1 epochs; exp"):
        fit(model, batches(2), callbacks=[Spoil(), StopWhenDiverged(), saving])
    assert saved == []


def test_a_validation_that_is_no_number_ends_fit():
    model = compile_model(uniform_model())
    spoil = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs.update(val_loss=float("nan"))
    )
    with pytest.raises(ValueError, match="val_loss is nan after epoch 1; exp"):
        fit(model, batches(2), callbacks=[spoil, StopWhenDiverged()])


def test_finite_training_goes_on():
    model = compile_model(uniform_model())
    history = fit(model, batches(2), 3, callbacks=[StopWhenDiverged()])
    assert len(history["loss"]) == 3


def test_tokens_per_second_leave_out_the_first_batch_and_validation(
    monkeypatch,
):
    clock = iter([100.0, 109.0, 111.0, 113.0, 500.0, 501.0, 502.0, 503.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    model = compile_model(uniform_model())
    history = fit(
        model,
        batches(3),
        2,
        validation_data=batches(1)[0],
        callbacks=[TokensPerSecond(30.0)],
    )
    assert history["tokens_per_second"] == [15.0, 30.0]
