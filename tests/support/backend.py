"""What the backends of Keras do differently: gradients and compilation."""

import keras
import numpy as np
from keras import ops


def gradients(function, variables):
    """Differentiates a scalar by Keras variables.

    Args:
        function: without arguments, returns a scalar tensor.
        variables: list of `keras.Variable`.

    Returns:
        The scalar, a float, and a list of NumPy arrays.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        values = [variable.value for variable in variables]
        with tf.GradientTape() as tape:
            result = function()
        found = tape.gradient(result, values, unconnected_gradients="zero")
        found = [tf.convert_to_tensor(gradient) for gradient in found]
    else:
        import jax

        def stateless(values):
            mapping = list(zip(variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return function()

        # Compiled as one, because each operation by itself takes longer.
        result, found = jax.jit(jax.value_and_grad(stateless))(
            [variable.value for variable in variables]
        )
    return float(result), [ops.convert_to_numpy(value) for value in found]


def input_gradients(function, *arrays):
    """Differentiates a scalar by arrays.

    Args:
        function: of tensors, one an array, to a scalar tensor.
        *arrays: float NumPy arrays.

    Returns:
        A list of NumPy arrays.
    """
    variables = [keras.Variable(array) for array in arrays]
    _, found = gradients(
        lambda: function(*[ops.convert_to_tensor(v) for v in variables]),
        variables,
    )
    return found


def compiled(function):
    """Compiles a function of tensors with XLA."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.function(function, jit_compile=True)
    import jax

    return jax.jit(function)


def all_finite(arrays):
    return all(np.isfinite(array).all() for array in arrays)
