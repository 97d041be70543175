"""How far apart two answers for one sentence are."""

import itertools
import math

# What fills outputs up at their ends, as far as the longest row of a batch.
_PADDING = {"token_log_probs": 0.0, "attention": 0.0}


def one_row(outputs, row, pad_id):
    """Gives what one sentence got, without padding.

    Args:
        outputs: dict of output name to a list with a value for each sentence,
            nested as its axes are.
        row: int, the place of the sentence in these lists.
        pad_id: int.

    Returns:
        A dict of output name to value.
    """
    padding = {"token_ids": pad_id, **_PADDING}
    return {
        name: strip(values[row], padding.get(name))
        for name, values in outputs.items()
    }


def strip(value, padding):
    """Cuts what fills a nested list up at its ends; None cuts nothing."""
    if padding is None or not isinstance(value, list):
        return value
    value = [strip(each, padding) for each in value]
    while value and value[-1] in (padding, []):
        value.pop()
    return value


def difference(found, expected):
    """Gives the largest difference of floats; infinity if others differ.

    Of floats beyond 10 the difference is relative, per 10, since errors of
    rounding grow with the number.
    """
    if isinstance(expected, dict):
        pairs = [(found[name], expected[name]) for name in expected]
    elif isinstance(expected, list):
        longest = max(found, expected, key=len)
        rest = longest[min(len(found), len(expected)) :]
        if not all(isinstance(each, (float, list)) for each in rest):
            return math.inf
        # Zeros at the end were cut, and a runtime may round to zero.
        fill = [] if rest and isinstance(rest[0], list) else 0.0
        pairs = list(itertools.zip_longest(found, expected, fillvalue=fill))
    elif found == expected:  # Minus infinity, an empty slot, among them.
        return 0.0
    elif not isinstance(expected, float) or not math.isfinite(found - expected):
        return math.inf
    else:
        return abs(found - expected) / max(1.0, abs(expected) / 10)
    return max((difference(*pair) for pair in pairs), default=0.0)
