"""Means of weights, and the callback that ends fit with them."""

import keras
import numpy as np
import pytest

from keras_transformer import WeightAveraging, average_weights
from tests.support.training import compile_model, fit, uniform_model


def random_sets(count, dtype="float32"):
    generator = np.random.default_rng(3)
    return [
        [
            generator.normal(size=shape).astype(dtype)
            for shape in ((2, 3), (5,), ())
        ]
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_mean_is_that_of_float64(count, dtype):
    sets = random_sets(count, dtype)
    found = average_weights(iter(sets))
    for place, array in enumerate(found):
        exact = np.mean([np.float64(each[place]) for each in sets], axis=0)
        assert array.dtype == dtype
        np.testing.assert_array_equal(array, exact.astype(dtype))


def test_nothing_that_was_given_changes():
    sets = random_sets(3)
    copies = [[array.copy() for array in each] for each in sets]
    average_weights(sets)
    for each, copy in zip(sets, copies, strict=True):
        for array, expected in zip(each, copy, strict=True):
            np.testing.assert_array_equal(array, expected)


def test_what_counts_is_the_last():
    found = average_weights([[np.array([3, 8])], [np.array([5, 9])]])
    assert found[0].dtype.kind == "i"
    assert found[0].tolist() == [5, 9]


@pytest.mark.parametrize(
    "others", [[np.zeros(2)], [np.zeros(3), np.zeros(1)], []]
)
def test_other_shapes_are_refused(others):
    with pytest.raises(
        ValueError, match=r"^sets must hold weights of one model, got the"
    ):
        average_weights([[np.zeros(3)], others])


def test_no_sets_are_refused():
    with pytest.raises(ValueError, match=r"at least one list .* got 0$"):
        average_weights([])


def steps(count=3):
    generator = np.random.default_rng(8)
    return [
        tuple(generator.integers(0, 32, (4, 5)) for _ in range(2))
        for _ in range(count)
    ]


class Watcher(keras.callbacks.Callback):
    """Logs given values and remembers the weights of each epoch."""

    def __init__(self, values):
        super().__init__()
        self.values = values
        self.weights = []

    def on_epoch_end(self, epoch, logs=None):
        logs["value"] = self.values[epoch]
        self.weights.append(self.model.get_weights())


@pytest.mark.parametrize(
    "arguments, epochs",
    [
        ({"count": 1}, [5]),
        ({"count": 3}, [3, 4, 5]),
        ({"count": 99}, [0, 1, 2, 3, 4, 5]),
        ({"count": 2, "monitor": "value"}, [1, 4]),
        ({"count": 2, "monitor": "value", "mode": "max"}, [0, 3]),
    ],
)
def test_fit_ends_with_the_mean_of_the_right_epochs(arguments, epochs):
    watcher = Watcher([9.0, 1.0, 4.0, 7.0, 2.0, 5.0])
    model = uniform_model()
    compile_model(model)
    averaging = WeightAveraging(**arguments)
    for _ in range(2):  # A second fit begins anew.
        watcher.weights.clear()
        fit(model, steps(), epochs=6, callbacks=[watcher, averaging])
    expected = average_weights([watcher.weights[epoch] for epoch in epochs])
    for found, array in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(found, array)
    moved = abs(watcher.weights[0][0] - watcher.weights[5][0]).max()
    assert moved > 1e-5


def test_moving_averages_are_averaged_in_turn():
    watcher = Watcher([0.0] * 4)
    model = uniform_model()
    compile_model(
        model, keras.optimizers.SGD(9.0, use_ema=True, ema_momentum=0.5)
    )
    swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
    averaging = WeightAveraging(2)
    fit(model, steps(), epochs=4, callbacks=[swap, watcher, averaging])
    expected = average_weights(watcher.weights[2:])
    for found, array in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(found, array)
    last = watcher.weights[3]
    assert any((a != b).any() for a, b in zip(expected, last, strict=True))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"count": 0}, "count must be a positive int, got count=0"),
        ({"count": 2, "mode": "most"}, "mode must be 'min' or 'max', got 'mo"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        WeightAveraging(**arguments)


def test_what_is_not_logged_cannot_be_monitored():
    model = uniform_model()
    compile_model(model)
    with pytest.raises(
        ValueError, match=r"monitor must be one of .*\['loss'\], got 'val_x'$"
    ):
        fit(model, steps(), callbacks=[WeightAveraging(2, "val_x")])
