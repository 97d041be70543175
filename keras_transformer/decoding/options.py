"""Options of decoding, checked where Python can still refuse them."""

import numpy as np

from keras_transformer.decoding.signatures import SIGNATURES

STRATEGIES = ("beam", "greedy")

PENALTY_LIMIT = 10.0
_LARGEST = 2**31 - 1
_SMALLEST = {
    "beam_size": 1,
    "num_hypotheses": 1,
    "max_length": -1,
    "min_length": 0,
}


def complete_options(strategy, options):
    """Fills in defaults and refuses what a graph would quietly mend.

    Args:
        strategy: one of `STRATEGIES`.
        options: dict of inputs of the signature of that name, but the ids.

    Returns:
        A dict of all of them.

    Raises:
        ValueError: naming the option that is unknown or out of range.
    """
    if strategy not in STRATEGIES:
        raise ValueError(
            f"strategy must be one of {STRATEGIES}, got strategy={strategy!r}"
        )
    defaults = {
        argument.name: argument.default
        for argument in SIGNATURES[strategy].inputs[1:]
    }
    for name in options:
        if name not in defaults:
            raise ValueError(
                f"strategy {strategy!r} takes the options "
                f"{sorted(defaults)}, got {name!r}"
            )
    options = {**defaults, **options}
    for name, smallest in _SMALLEST.items():
        if name in options:
            check_count(name, options[name], smallest)
    if "beam_size" in options:
        _check_beam(options)
    return options


def check_count(name, value, smallest):
    """Raises ValueError unless `value` is an int32 of at least `smallest`."""
    is_int = isinstance(value, (int, np.integer))
    if not is_int or isinstance(value, bool) or value < smallest:
        raise ValueError(
            f"{name} must be an int of at least {smallest}, got "
            f"{name}={value!r}"
        )
    if value > _LARGEST:
        raise ValueError(
            f"{name} must be an int32, at most {_LARGEST}, got {name}={value!r}"
        )


def _check_beam(options):
    if options["num_hypotheses"] > options["beam_size"]:
        raise ValueError(
            "num_hypotheses must be at most beam_size, got num_hypotheses="
            f"{options['num_hypotheses']}, beam_size={options['beam_size']}"
        )
    length_penalty = options["length_penalty"]
    numbers = (int, float, np.integer, np.floating)
    limit = PENALTY_LIMIT
    if (
        not isinstance(length_penalty, numbers)
        or not -limit <= length_penalty <= limit
    ):
        raise ValueError(
            f"length_penalty must be a number in [-{limit:g}, {limit:g}], got "
            f"length_penalty={length_penalty!r}"
        )
