"""Checks of sizes and rates that constructors take."""


def check_positive(**sizes):
    """Refuses sizes that are not positive integers.

    Args:
        **sizes: name to value; None means "not given" and passes.

    Raises:
        ValueError: naming the argument, the value and what was expected.
    """
    for name, value in sizes.items():
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(
                f"{name} must be a positive int, got {name}={value!r}"
            )


def check_rate(**rates):
    """Refuses rates outside `[0, 1)`.

    Args:
        **rates: name to value.

    Raises:
        ValueError: naming the argument, the value and what was expected.
    """
    for name, value in rates.items():
        if not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise ValueError(
                f"{name} must be a number in [0, 1), got {name}={value!r}"
            )


def check_width(d_model, inputs_shape):
    """Refuses inputs of another width than the residual stream.

    Args:
        d_model: int, `D`.
        inputs_shape: tuple, the shape of `inputs`.

    Raises:
        ValueError: naming both.
    """
    if inputs_shape[-1] != d_model:
        raise ValueError(
            f"inputs must have the width d_model={d_model}, got inputs of "
            f"shape {tuple(inputs_shape)}"
        )
