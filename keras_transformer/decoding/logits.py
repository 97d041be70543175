"""From logits to the candidates for the next id."""

import tensorflow as tf

# The log-probability of what cannot be.
IMPOSSIBLE = float("-inf")


def allowed_candidates(logits, count, forbidden_ids):
    """Finds the likeliest allowed ids of each row.

    It looks at `count` ids more than there are forbidden ones instead of
    masking the whole vocabulary, which would copy `(R, V)` at every step.

    Args:
        logits: float32 `(R, V)`.
        count: int or int32 scalar, how many candidates are wanted.
        forbidden_ids: int32 `(M,)`; -1 forbids nothing.

    Returns:
        log-probabilities float32 `(R, C)` and ids int32 `(R, C)`, likeliest
        first, ties by lower id, `C = min(count + M, V)`. The probabilities
        are the model's own, forbidden ids included in the normaliser; a
        candidate that is forbidden or impossible has minus infinity, and may
        stand anywhere.
    """
    num_forbidden = tf.shape(forbidden_ids)[0]
    size = tf.minimum(count + num_forbidden, tf.shape(logits)[1])
    values, ids = tf.math.top_k(logits, size)
    forbidden = tf.reduce_any(
        tf.equal(ids[:, :, None], forbidden_ids[None, None, :]), axis=2
    )
    # A row that is all minus infinity has that as its normalizer too, and
    # their difference would be NaN.
    possible = tf.logical_and(values > IMPOSSIBLE, tf.logical_not(forbidden))
    normalizer = tf.reduce_logsumexp(logits, axis=1, keepdims=True)
    return tf.where(possible, values - normalizer, IMPOSSIBLE), ids


def forbid_early_eos(forbidden_ids, eos_id, position, min_length):
    """Adds eos to the forbidden ids while a hypothesis is too short.

    Args:
        forbidden_ids: sequence of ints, or int32 `(M,)`.
        eos_id: int.
        position: int32 scalar, number of ids generated so far.
        min_length: int32 scalar, the smallest length, eos included.

    Returns:
        int32 `(M + 1,)`, the last one eos or -1.
    """
    early_eos = tf.where(position + 1 < min_length, eos_id, -1)
    return tf.concat(
        [tf.cast(forbidden_ids, tf.int32), tf.reshape(early_eos, (1,))], axis=0
    )
