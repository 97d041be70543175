"""What every layer must do, checked by one function."""

import inspect

import keras
import numpy as np
from keras import ops

from tests.support.backend import all_finite, gradients
from tests.support.small_models import difference, randomize, to_numpy

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
OF_EVERY_LAYER = {"name", "dtype", "trainable"}
# In a config only if they are given, so that others are those of the paper.
VARIANTS = {"make_norm", "rotate"}


def check_layer(
    layer_class, arguments, inputs, folder, call=None, arguments_of=()
):
    """Runs a layer through the contract.

    Args:
        layer_class: the class.
        arguments: dict, its constructor arguments (no dropout, so that two
            calls are equal).
        inputs: list of NumPy arrays, its call arguments by position.
        folder: path where files may be written.
        call: a function `(layer, *inputs)`, by default `layer(*inputs)`.
        arguments_of: classes whose constructor arguments it passes on.
    """
    call = call or (lambda layer, *tensors: layer(*tensors))
    layer = layer_class(**arguments)
    call(layer, *inputs)
    randomize(layer)
    check_config(layer, arguments, inputs, call, arguments_of)
    check_build(layer, arguments, inputs, call)
    check_gradients(layer, inputs, call)
    for policy in POLICIES:
        check_policy(layer, policy, arguments, inputs, call)
    check_model(layer, inputs, folder, call)


def check_config(layer, arguments, inputs, call, arguments_of):
    config = layer.get_config()
    names = set()
    for owner in (type(layer), *arguments_of):
        for parameter in inspect.signature(owner).parameters.values():
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                names.add(parameter.name)
    absent = VARIANTS - set(arguments)
    assert set(config) == (names | OF_EVERY_LAYER) - absent
    for name, value in arguments.items():
        if callable(value):
            value = keras.saving.get_registered_name(value)
        assert config[name] == value, name

    copy = type(layer).from_config(config)
    assert copy.get_config() == config
    call(copy, *inputs)
    copy.set_weights(layer.get_weights())
    assert difference(call(copy, *inputs), call(layer, *inputs)) == 0


def check_build(layer, arguments, inputs, call):
    fresh = type(layer)(**arguments)
    assert not fresh.built
    parameters = inspect.signature(fresh.build).parameters
    fresh.build(*[x.shape for x in inputs][: len(parameters)])
    assert fresh.built
    shapes = [tuple(variable.shape) for variable in layer.weights]
    assert [tuple(variable.shape) for variable in fresh.weights] == shapes
    fresh.set_weights(layer.get_weights())
    assert difference(call(fresh, *inputs), call(layer, *inputs)) == 0


def check_gradients(layer, inputs, call):
    variables = layer.trainable_variables
    if not variables:
        return
    _, found = gradients(
        lambda: ops.sum(ops.square(ops.cast(call(layer, *inputs), "float32"))),
        variables,
    )
    assert all_finite(found)
    assert any(gradient.any() for gradient in found)


def check_policy(layer, policy, arguments, inputs, call):
    copy = type(layer)(**arguments, dtype=policy)
    call(copy, *inputs)
    copy.set_weights(layer.get_weights())
    outputs = call(copy, *inputs)
    expected = keras.dtype_policies.get(policy).compute_dtype
    assert keras.backend.standardize_dtype(outputs.dtype) == expected
    assert {variable.dtype for variable in copy.trainable_variables} <= {
        "float32"
    }
    outputs = to_numpy(ops.cast(outputs, "float32"))
    reference = to_numpy(call(layer, *inputs))
    tolerance = {"float32": 1e-6, "float16": 2e-2, "bfloat16": 2e-1}
    np.testing.assert_allclose(
        outputs, reference, rtol=0.1, atol=tolerance[expected]
    )
    check_gradients(copy, inputs, call)


def check_model(layer, inputs, folder, call):
    """In a functional model: symbolic, traced, saved and loaded."""
    symbols = [
        keras.Input((None, *x.shape[2:]), dtype=str(x.dtype)) for x in inputs
    ]
    outputs = call(layer, *symbols)
    expected = call(layer, *inputs)
    for symbolic, actual in zip(outputs.shape, expected.shape, strict=True):
        assert symbolic in (None, actual)
    model = keras.Model(symbols, outputs)
    assert difference(model(inputs), expected) < 1e-6
    assert difference(model.predict(inputs, verbose=0), expected) < 1e-5

    path = folder / "model.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert difference(loaded(inputs), expected) < 1e-6
