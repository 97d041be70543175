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

# Of those from 0 to 1, the ones that a bool fits.
_FLAGS = {"early_stopping"}


def complete_options(strategy, options, vocab_size=_INT32):
    """Fills in defaults and refuses what a graph would quietly mend.

    Args:
        strategy: one of `STRATEGIES`.
        options: dict of inputs of the signature of that name, but the ids
            and the seed.
        vocab_size: int, ids must be below it.

    Returns:
        A dict of all of them.

    Raises:
        ValueError: naming the option that is unknown or out of range.
    """
    if strategy not in STRATEGIES:
        raise ValueError(
            f"strategy must be one of {STRATEGIES}, got strategy={strategy!r}"
        )
    arguments = {
        argument.name: argument
        for argument in SIGNATURES[strategy].inputs
        if argument.default is not None
    }
    for name in options:
        if name not in arguments:
            raise ValueError(
                f"strategy {strategy!r} takes the options "
                f"{sorted(arguments)}, got {name!r}"
            )
    checked = {}
    for name, argument in arguments.items():
        value = options.get(name, argument.default)
        if name in RANGES:
            checked[name] = check_number(name, value, *RANGES[name])
        else:
            rank = len(argument.shape)
            checked[name] = check_ids(name, value, rank, vocab_size)
    if strategy == "beam":
        check_num_hypotheses(checked["num_hypotheses"], checked["beam_size"])
    return checked


def check_num_hypotheses(num_hypotheses, beam_size):
    """Refuses more hypotheses than beams, where both are Python numbers."""
    if tf.is_tensor(num_hypotheses) or tf.is_tensor(beam_size):
        return
    if num_hypotheses > beam_size:
        raise ValueError(
            "num_hypotheses must be at most beam_size, got num_hypotheses="
            f"{num_hypotheses}, beam_size={beam_size}"
        )


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
        largest: the most it may be.

    Returns:
        The value, an int for a bool where it is a flag.

    Raises:
        ValueError: naming argument, value and range.
    """
    is_bool = isinstance(value, (bool, np.bool_))
    if is_bool and name in _FLAGS:
        return int(value)
    if isinstance(smallest, int):
        kind, types = "an int", (int, np.integer)
    else:
        kind, types = "a number", (int, float, np.integer, np.floating)
    if (
        is_bool
        or not isinstance(value, types)
        or not (smallest <= value <= largest)
    ):
        raise ValueError(
            f"{name} must be {kind} from {smallest:.10g} to {largest:.10g}, "
            f"got {name}={value!r}"
        )
    return value


def check_ids(name, value, rank, vocab_size):
    """Refuses what is no array of ids.

    Args:
        name: str, the name of the argument.
        value: nest of ints.
        rank: int, how deep it must be.
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
    if (
        ids.ndim != rank
        or not is_int
        or ((ids < 0) | (ids >= vocab_size)).any()
    ):
        raise ValueError(
            f"{name} must be ints from 0 to {vocab_size - 1} in an array of "
            f"rank {rank}, got {name}={value!r}"
        )
    return ids.astype(np.int32)
