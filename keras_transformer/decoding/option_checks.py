"""Options that Python refuses and graphs bring into range."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.options import (
    BY_NAME,
    DEFAULTS,
    LARGEST_INT,
    RANGES,
    STRATEGIES,
    options_of,
)


def complete_options(strategy, options, vocab_size=LARGEST_INT):
    """Fills in defaults and refuses what a graph would quietly mend.

    Args:
        strategy: one of `STRATEGIES`.
        options: dict of options of that strategy.
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
    known = options_of(strategy)
    names = [option.name for option in known]
    for name in options:
        if name not in names:
            raise ValueError(
                f"strategy {strategy!r} takes the options {sorted(names)}, "
                f"got {name!r}"
            )
    values = {name: options.get(name, DEFAULTS[name]) for name in names}
    checked = check_numbers(**values)
    for option in known:
        if option.shape:
            checked[option.name] = check_ids(
                option.name,
                values[option.name],
                len(option.shape),
                vocab_size,
            )
    return checked


def check_numbers(**values):
    """Refuses options that are Python numbers out of range.

    Args:
        **values: options by name; tensors and ids pass.

    Returns:
        A dict of them, an int for a bool where the option is a flag.

    Raises:
        ValueError: naming the option, its value and its range.
    """
    checked = dict(values)
    for name, value in values.items():
        option = BY_NAME[name]
        if option.shape or tf.is_tensor(value):
            continue
        if option.is_flag and isinstance(value, (bool, np.bool_)):
            checked[name] = int(value)
        else:
            check_number(name, value, *option.range)
    numbers = [checked.get(name, 1) for name in ("num_hypotheses", "beam_size")]
    if not any(map(tf.is_tensor, numbers)) and numbers[0] > numbers[1]:
        raise ValueError(
            "num_hypotheses must be at most beam_size, got num_hypotheses="
            f"{numbers[0]}, beam_size={numbers[1]}"
        )
    return checked


def clip_numbers(**values):
    """Brings options that are tensors into range, as a graph must.

    Args:
        **values: options by name; ids pass.

    Returns:
        A dict of them.
    """
    clipped = {
        name: tf.clip_by_value(value, *RANGES[name])
        if name in RANGES
        else value
        for name, value in values.items()
    }
    if "num_hypotheses" in clipped:
        clipped["num_hypotheses"] = tf.minimum(
            clipped["num_hypotheses"], clipped["beam_size"]
        )
    return clipped


def check_number(name, value, smallest, largest=LARGEST_INT):
    """Refuses what is no number, or not in its range.

    Args:
        name: str, the name of the argument.
        value: what was given.
        smallest: the least it may be; if an int, the value must be one.
        largest: the most it may be.

    Raises:
        ValueError: naming argument, value and range.
    """
    if isinstance(smallest, int):
        kind, types = "an int", (int, np.integer)
    else:
        kind, types = "a number", (int, float, np.integer, np.floating)
    if (
        isinstance(value, (bool, np.bool_))
        or not isinstance(value, types)
        or not (smallest <= value <= largest)
    ):
        raise ValueError(
            f"{name} must be {kind} from {smallest:.10g} to {largest:.10g}, "
            f"got {name}={value!r}"
        )


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
