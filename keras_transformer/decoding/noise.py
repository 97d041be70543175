"""Random numbers that are the same in every runtime.

A counter-based generator: a number is a function of a seed and a position,
with no state, so it does not depend on what was drawn before or beside it. It
uses additions, products and remainders of int32 that never overflow, which
every runtime has and computes alike; most have no random operator, and those
that have one differ.
"""

import numpy as np
import tensorflow as tf

# A prime small enough that (2 * PRIME) ** 2 < 2 ** 31, and 2 modulo 3, so
# that the cube is a permutation of the remainders.
PRIME = 23159
# One for each round, with nothing to hide: the fractional parts of the square
# roots of the first primes.
_CONSTANTS = [int(PRIME * (root % 1)) for root in np.sqrt([2, 3, 5, 7, 11, 13])]
# Of all numbers that a key can be only so many are told apart that float32
# holds each exactly.
_COARSER = 32
_BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))


def seed_keys(seeds):
    """Turns seeds into what `uniform` takes.

    Args:
        seeds: int32 `(B, 2)`, any values. Of those that differ by a multiple
            of `PRIME ** 2` (536,339,281) the keys are the same.

    Returns:
        int32 `(B, 2)`, each in [0, `PRIME`).
    """
    key = tf.zeros_like(seeds)
    for half in (seeds[:, :1], seeds[:, 1:]):
        key = _mix(key, half)
    return key


def uniform(keys, position):
    """Draws one number for each row, uniform in [0, 1).

    Args:
        keys: int32 `(B, 2)` of `seed_keys`.
        position: int32 scalar, 0 or more.

    Returns:
        float32 `(B,)`.
    """
    left, right = tf.unstack(
        _mix(keys, tf.reshape(position, (1, 1))), 2, axis=1
    )
    steps = tf.cast(tf.truncatediv(left * PRIME + right, _COARSER), tf.float32)
    # One product with a constant: optimisers of graphs would turn a division
    # into one, and round otherwise.
    return tf.minimum(steps * (_COARSER / PRIME**2), _BELOW_ONE)


def _mix(key, number):
    """Adds an int32 `(B, 1)` or `(1, 1)` to a key and stirs.

    A Feistel network whose round function is the cube modulo a prime, as in
    MiMC (Albrecht et al., 2016, https://eprint.iacr.org/2016/492).
    """
    # Division that truncates, and remainders of what is not negative: the two
    # that all runtimes agree on.
    high = tf.truncatediv(number, PRIME)
    low = number - high * PRIME + PRIME
    # One less for a negative remainder, or -1 would be as PRIME - 1.
    high += tf.truncatediv(low, PRIME)
    added = tf.concat([low, high + 5 * PRIME], axis=1)
    left, right = tf.unstack(tf.math.floormod(key + added, PRIME), 2, axis=1)
    for constant in _CONSTANTS:
        base = left + constant
        cube = tf.math.floormod(base * base, PRIME) * base
        left, right = tf.math.floormod(cube + right, PRIME), left
    return tf.stack([left, right], axis=1)
