"""Functions that a user gives to layers, and how a saved model names them."""

import keras


def registered_function(argument, function):
    """Gives the function that an argument is or names.

    Args:
        argument: str, its name.
        function: a function, the name that Keras has registered it by, or
            None.

    Returns:
        The function, or None.

    Raises:
        ValueError: if it is not registered, since no saved model could name
            it; or if a saved model names one that is not.
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
    """Gives what a config holds of arguments that are functions.

    Args:
        **functions: name of the argument to function, or None.

    Returns:
        dict of name to registered name, of those that are given: the config
        of a layer without is that of the paper's.
    """
    return {
        argument: keras.saving.get_registered_name(
            registered_function(argument, function)
        )
        for argument, function in functions.items()
        if function is not None
    }


def _is_registered(function):
    if not callable(function) or not hasattr(function, "__name__"):
        return False
    name = keras.saving.get_registered_name(function)
    return keras.saving.get_registered_object(name) is function
