"""Training goes on after a model was saved and loaded."""

import json
import os
import subprocess
import sys

import keras
import pytest

from keras_transformer import MaskedCrossEntropy, WarmupSchedule
from tests.support.small_models import random_batch, small_transformer
from tests.support.training import (
    compile_model,
    fit,
    weight_difference,
)

LOAD = """
import json, sys
import keras
import keras_transformer

model = keras.saving.load_model(sys.argv[1])
schedule = keras.saving.deserialize_keras_object(
    model.optimizer.get_config()["learning_rate"])
print(json.dumps({
    "model": type(model).__name__,
    "schedule": type(schedule).__name__,
    "config": schedule.get_config(),
    "beta_2": model.optimizer.beta_2,
    "epsilon": model.optimizer.epsilon,
    "iterations": int(model.optimizer.iterations),
    "rate": float(model.optimizer.learning_rate),
    "loss": type(model.loss).__name__,
    "label_smoothing": model.loss.label_smoothing,
}))
"""


def test_new_process_loads_what_was_compiled(tmp_path):
    model = small_transformer(num_layers=1)
    schedule = WarmupSchedule(512, 4000)
    compile_model(
        model,
        keras.optimizers.Adam(schedule, 0.9, 0.98, 1e-9),
        MaskedCrossEntropy(0.1),
        few_steps=True,
    )
    fit(model, [random_batch([3, 2], [4, 5])] * 3)
    path = tmp_path / "model.keras"
    model.save(path)

    output = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert json.loads(output) == {
        "model": "Transformer",
        "schedule": "WarmupSchedule",
        "config": schedule.get_config(),
        "beta_2": 0.98,
        "epsilon": 1e-9,
        "iterations": 3,
        "rate": pytest.approx(float(schedule(3)), rel=1e-6),
        "loss": "MaskedCrossEntropy",
        "label_smoothing": 0.1,
    }


class Recorder(keras.callbacks.Callback):
    """Keeps the learning rate before each update; saves at an epoch's end."""

    def __init__(self, path=None, save_after=None):
        super().__init__()
        self.path, self.save_after = path, save_after
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))

    def on_epoch_end(self, epoch, logs=None):
        if epoch + 1 == self.save_after:
            self.model.save(self.path)


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_resumed_run_equals_the_uninterrupted_one(dtype, tmp_path):
    path = tmp_path / "model.keras"
    batches = [
        random_batch([3, 5, 4], [4, 2, 5], seed=seed) for seed in range(10)
    ]
    whole = compile_model(
        small_transformer(num_layers=1, dtype=dtype),
        keras.optimizers.Adam(WarmupSchedule(11, 15), 0.9, 0.98, 1e-9),
        MaskedCrossEntropy(0.1),
    )
    uninterrupted = Recorder(path, save_after=2)
    fit(whole, batches, epochs=3, callbacks=[uninterrupted])

    resumed = keras.saving.load_model(path)
    saved = resumed.get_weights()
    assert weight_difference(whole.get_weights(), saved) > 1e-3
    recorder = Recorder()
    fit(resumed, batches, 3, initial_epoch=2, callbacks=[recorder])

    optimizers = [whole.optimizer, resumed.optimizer]
    if dtype == "mixed_float16":
        optimizers = [outer.inner_optimizer for outer in optimizers]
    assert [int(each.iterations) for each in optimizers] == [30, 30]
    assert len(recorder.rates) == 10
    assert recorder.rates == uninterrupted.rates[20:]
    expected = float(WarmupSchedule(11, 15)(20))
    assert recorder.rates[0] == pytest.approx(expected, rel=1e-6)
    final = resumed.get_weights()
    assert weight_difference(whole.get_weights(), final) < 1e-5
