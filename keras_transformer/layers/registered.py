"""Functions that a user gives to layers, and how a saved model names them."""

import keras


def registered_function(argument, function):
    """Gives the function that an argument is or names.

    Args:
        argument: str, its name.
        function: a function, the name it is registered by, or None.

    Raises:
        ValueError: if it is not registered, or the name of nothing that is.
    """
    if isinstance(function, str):
        found = keras.saving.get_registered_object(function)
        if found is None:
            raise ValueError(
                f"{argument}={function!r} is not registered; first import the "
                "module that registers it with "
                "keras.saving.register_keras_serializable"
            )
        return found
    if function is not None and not _is_registered(function):
        raise ValueError(
            f"{argument} must be a function registered with "
            "keras.saving.register_keras_serializable, so that a saved model "
            f"can name it, got {argument}={function!r}"
        )
    return function


def registered_names(**functions):
    """Gives the part of a config that names functions.

    Args:
        **functions: name of the argument to function, or to its name; None
            is left out, so that the paper's model has no such key.
    """
    return {
        argument: function
        if isinstance(function, str)
        else keras.saving.get_registered_name(function)
        for argument, function in functions.items()
        if function is not None
    }


def _is_registered(function):
    if not callable(function) or not hasattr(function, "__name__"):
        return False
    name = keras.saving.get_registered_name(function)
    # Maybe another by now: a cell of a notebook that is run again.
    return keras.saving.get_registered_object(name) is not None
