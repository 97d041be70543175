"""Random numbers that are the same in every runtime.

A counter-based generator: a number is a function of a seed and of where it is
used, with no state, so it does not depend on what was drawn before or beside
it. It uses sums, products and quotients of int32 that never overflow, which
every runtime has and computes alike; most have no random operator, and those
that have one differ.
"""

import numpy as np
import tensorflow as tf

# A prime so small that (2 * PRIME) ** 2 and some more is below 2 ** 31.
PRIME = 23159
# One for each round, with nothing to hide: the fractional parts of the square
# roots of the first primes. The first round has none: there the left digit is
# a sum already, and the square of a larger one would not fit.
_CONSTANTS = [
    0,
    *(int(PRIME * (root % 1)) for root in np.sqrt([2, 3, 5, 7, 11])),
]
# Keys must differ even between seeds that differ in one bit. Numbers are of
# keys that are mixed well, and there is one for each id of a vocabulary.
_KEY_ROUNDS, _NUMBER_ROUNDS = 6, 4
_BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))


def seed_keys(seeds):
    """Turns seeds into keys.

    Args:
        seeds: int32 `(B, 2)`, any values. There are `PRIME ** 2`
            (536,339,281) keys. Seeds with equal first halves share one only
            if the second halves differ by a multiple of that; others may by
            chance.

    Returns:
        int32 `(B, 2)`, each in [0, `PRIME`).
    """
    keys = tf.zeros_like(seeds)
    for half in (seeds[:, :1], seeds[:, 1:]):
        keys = step_keys(keys, half)
    return keys


def step_keys(keys, position):
    """Makes the keys of one step.

    Args:
        keys: int32 `(B, 2)` of `seed_keys`.
        position: int32 scalar or `(B, 1)`.

    Returns:
        int32 `(B, 2)`, each in [0, `PRIME`).
    """
    mixed = _mix(keys, tf.reshape(position, (-1, 1)), _KEY_ROUNDS)
    return tf.concat(mixed, axis=1)


def uniform(keys, numbers):
    """Gives a random number for each key and each of some integers.

    Args:
        keys: int32 `(B, 2)` of `step_keys`.
        numbers: int32 `(B, N)`, or `(1, N)` if all keys have the same.

    Returns:
        float32 `(B, N)`, above 0 and below 1: the middle of one of
        `PRIME ** 2` equal steps, rounded, so that small ones have all their
        digits.
    """
    left, right = _mix(keys, numbers, _NUMBER_ROUNDS)
    steps = tf.cast(left * PRIME + right, tf.float32) + 0.5
    # A product with a constant: optimisers of graphs would turn a division
    # into one, and round otherwise.
    return tf.minimum(steps * (1 / PRIME**2), _BELOW_ONE)


def _mix(keys, numbers, rounds):
    """Adds int32 numbers to keys, digit by digit, and stirs; gives both digits.

    A Feistel network (Luby and Rackoff, 1988) on two digits to the base
    `PRIME`, whose round function is the square: as in MiMC (Albrecht et al.,
    2016, https://eprint.iacr.org/2016/492), with a square for the cube, since
    nothing has to be kept secret.
    """
    # Quotients are truncated in all runtimes, remainders of what is negative
    # differ.
    high = tf.truncatediv(numbers, PRIME)
    low = numbers - high * PRIME
    # From here on nothing is negative: a low digit borrows from the high one,
    # which multiples of PRIME keep positive and leave as it is.
    borrowed = tf.cast(low < 0, tf.int32)
    left = keys[:, :1] + low + borrowed * PRIME
    right = keys[:, 1:] + high - borrowed + 5 * PRIME
    for constant in _CONSTANTS[:rounds]:
        base = left + constant
        left, right = _remainder(base * base + right), left
    return left, right


def _remainder(numbers):
    """The remainder of what is not negative, faster than by its operator."""
    return numbers - tf.truncatediv(numbers, PRIME) * PRIME
