import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import WarmupSchedule


def rate(schedule, step):
    return float(schedule(step))


def formula(step, d_model, warmup_steps):
    """The paper's equation 3; its steps count from 1."""
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


@pytest.mark.parametrize(
    ("iteration", "expected"),
    [(0, 1.74693e-7), (3999, 6.98771e-4), (15999, 3.49386e-4)],
)
def test_values_of_the_paper(iteration, expected):
    schedule = WarmupSchedule(512, 4000)
    assert rate(schedule, iteration) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("iteration", [0, 1, 5, 6, 7, 12, 101])
def test_iteration_t_is_step_t_plus_one(iteration):
    expected = formula(iteration + 1, d_model=11, warmup_steps=7)
    schedule = WarmupSchedule(11, warmup_steps=7)
    assert rate(schedule, iteration) == pytest.approx(expected, rel=1e-6)


STEPS = {
    "int": lambda: 1,
    "np.int64": lambda: np.int64(1),
    "int32 tensor": lambda: ops.convert_to_tensor(1, "int32"),
    "int64 tensor": lambda: ops.convert_to_tensor(np.int64(1)),
    "float32 tensor": lambda: ops.convert_to_tensor(1.0, "float32"),
    "float": lambda: 1.0,
    "int variable": lambda: keras.Variable(1, dtype="int32"),
    "iterations": lambda: iterations_after_one_update(),
}


def iterations_after_one_update():
    optimizer = keras.optimizers.SGD()
    variable = keras.Variable(np.zeros(3, "float32"))
    optimizer.build([variable])
    optimizer.apply([ops.ones(3)])
    return optimizer.iterations


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_any_kind_of_number_gives_the_same_float32(step):
    result = WarmupSchedule(512, 4000)(step())
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    expected = formula(2, 512, 4000)
    assert float(result) == pytest.approx(expected, rel=1e-6)


def test_far_iterations_are_exact_enough():
    schedule = WarmupSchedule(512, 4000)
    expected = formula(10_000_001, 512, 4000)
    assert rate(schedule, 10_000_000) == pytest.approx(expected, rel=1e-5)


def test_factor_scales_the_whole():
    plain, scaled = WarmupSchedule(11, 7), WarmupSchedule(11, 7, factor=3.0)
    for iteration in (0, 6, 50):
        expected = 3 * rate(plain, iteration)
        assert rate(scaled, iteration) == pytest.approx(expected)


def test_micro_batches_of_an_update_share_a_rate():
    plain = WarmupSchedule(11, 7)
    accumulated = WarmupSchedule(11, 7, steps_per_update=3)
    for micro_batch in range(60):
        expected = rate(plain, micro_batch // 3)
        assert rate(accumulated, micro_batch) == pytest.approx(expected)


def test_peak_is_the_rate_asked_for():
    schedule = WarmupSchedule.from_peak(
        0.002, d_model=128, warmup_steps=500, steps_per_update=2
    )
    rates = [rate(schedule, 2 * update) for update in range(450, 550)]
    assert max(rates) == pytest.approx(0.002)
    assert int(np.argmax(rates)) + 450 == 499
    assert schedule.get_config()["steps_per_update"] == 2


def test_config_gives_the_same_schedule():
    arguments = {
        "d_model": 11,
        "warmup_steps": 7,
        "factor": 0.5,
        "steps_per_update": 3,
    }
    schedule = WarmupSchedule(**arguments)
    assert schedule.get_config() == arguments
    copy = keras.optimizers.schedules.deserialize(
        keras.optimizers.schedules.serialize(schedule)
    )
    assert type(copy) is WarmupSchedule
    assert copy.get_config() == arguments


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"d_model": 0},
            "d_model must be a positive int, got d_model=0",
        ),
        (
            {"warmup_steps": 4e3},
            "warmup_steps must be a positive int, got warmup_steps=4000.0",
        ),
        (
            {"steps_per_update": 0},
            "steps_per_update must be a positive int, got steps_per_update=0",
        ),
        (
            {"factor": 0},
            "factor must be a number above 0, got factor=0",
        ),
        (
            {"factor": "1"},
            "factor must be a number above 0, got factor='1'",
        ),
    ],
)
def test_error_names_the_argument_that_does_not_fit(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        WarmupSchedule(**{"d_model": 512, **changes})
