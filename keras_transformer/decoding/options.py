"""Options of decoding, checked where Python can still refuse them."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.signatures import SIGNATURES

STRATEGIES = ("beam", "greedy", "sample")

_INT32 = 2**31 - 1

# Smallest and largest value of each option that is a number. Python refuses
# others; a graph takes the nearest one.
RANGES = {
    "beam_size": (1, _INT32),
    "num_hypotheses": (1, _INT32),
    "length_penalty": (-10.0, 10.0),
    "length_penalty_form": (0, 1),
    "coverage_penalty": (0.0, 10.0),
    "early_stopping": (0, 1),
    "temperature": (0.0, 100.0),
    "top_k": (0, _INT32),
    "top_p": (1e-6, 1.0),
    "max_length": (-1, _INT32),
    "min_length": (0, _INT32),
    "no_repeat_ngram_size": (0, _INT32),
    "repetition_penalty": (0.01, 100.0),
}


def complete_options(strategy, options):
    """Fills in defaults and refuses what a graph would quietly mend.

    Args:
        strategy: one of `STRATEGIES`.
        options: dict of inputs of the signature of that name, but the ids
            and the seed.

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
        for argument in SIGNATURES[strategy].inputs
        if argument.default is not None
    }
    for name in options:
        if name not in defaults:
            raise ValueError(
                f"strategy {strategy!r} takes the options "
                f"{sorted(defaults)}, got {name!r}"
            )
    options = {**defaults, **options}
    for name, value in options.items():
        if name in RANGES:
            options[name] = check_number(name, value, *RANGES[name])
        else:
            options[name] = check_ids(name, value)
    if options.get("num_hypotheses", 1) > options.get("beam_size", 1):
        raise ValueError(
            "num_hypotheses must be at most beam_size, got num_hypotheses="
            f"{options['num_hypotheses']}, beam_size={options['beam_size']}"
        )
    return options


def check_given(**options):
    """Refuses Python numbers out of range; tensors are left to the graph.

    Args:
        **options: values of options of `RANGES`.

    Raises:
        ValueError: naming the option, its value and its range.
    """
    for name, value in options.items():
        if not tf.is_tensor(value):
            check_number(name, value, *RANGES[name])


def check_number(name, value, smallest, largest=_INT32):
    """Refuses what is no number, or not in its range.

    Args:
        name: str, the name of the argument.
        value: what was given.
        smallest: the least it may be; if an int, the value must be one.
        largest: the most it may be; if 1 beside a 0, a bool will do.

    Returns:
        The value, an int for a bool.

    Raises:
        ValueError: naming argument, value and range.
    """
    if isinstance(smallest, int):
        kind, types = "an int", (int, np.integer)
    else:
        kind, types = "a number", (int, float, np.integer, np.floating)
    is_flag = (smallest, largest) == (0, 1)
    if isinstance(value, (bool, np.bool_)) and is_flag:
        return int(value)
    is_number = isinstance(value, types) and not isinstance(value, bool)
    if not is_number or not smallest <= value <= largest:
        raise ValueError(
            f"{name} must be {kind} from {smallest:g} to {largest:.10g}, got "
            f"{name}={value!r}"
        )
    return value


def check_ids(name, value, vocab_size=_INT32):
    """Refuses what is no array of ids.

    Args:
        name: str, the name of the argument.
        value: int or nest of ints of one rank.
        vocab_size: int, ids must be below it.

    Returns:
        int32 array.

    Raises:
        ValueError: naming argument, value and range.
    """
    try:
        ids = np.array(value)
    except ValueError:  # Rows of different lengths.
        ids = np.array(None)
    is_int = ids.size == 0 or np.issubdtype(ids.dtype, np.integer)
    if not is_int or ((ids < 0) | (ids >= vocab_size)).any():
        raise ValueError(
            f"{name} must be an array of ints from 0 to {vocab_size - 1}, "
            f"got {name}={value!r}"
        )
    return ids.astype(np.int32)
