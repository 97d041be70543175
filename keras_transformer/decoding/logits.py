"""From logits to the candidates for the next id."""

import tensorflow as tf

# The log-probability of what cannot be.
IMPOSSIBLE = float("-inf")


def log_normalizer(logits):
    """Computes what a log-probability is less than its logit: logsumexp.

    Args:
        logits: float32 `(..., V)`.

    Returns:
        float32 `(..., 1)`.
    """
    # As tf.reduce_logsumexp, with fewer operators: this is in every step.
    largest = tf.reduce_max(logits, axis=-1, keepdims=True)
    largest = tf.where(tf.abs(largest) < -IMPOSSIBLE, largest, 0.0)
    rest = tf.reduce_sum(tf.exp(logits - largest), axis=-1, keepdims=True)
    return tf.math.log(rest) + largest


def allowed_candidates(logits, count, forbidden_ids):
    """Finds the likeliest allowed ids of each row.

    It looks at `count` ids more than there are forbidden ones instead of
    masking the whole vocabulary, which would copy `(R, V)` at every step.

    Args:
        logits: float32 `(R, V)`.
        count: int or int32 scalar, how many candidates are wanted.
        forbidden_ids: int32 `(R, M)`, or `(1, M)` if all rows have the same;
            -1 forbids nothing.

    Returns:
        log-probabilities float32 `(R, C)` and ids int32 `(R, C)`, likeliest
        first, ties by lower id, `C = min(count + M, V)`. The probabilities
        are those of all logits, forbidden ids included; a candidate that is
        forbidden or impossible has minus infinity, and may stand anywhere.
    """
    num_forbidden = tf.shape(forbidden_ids)[1]
    size = tf.minimum(count + num_forbidden, tf.shape(logits)[1])
    values, ids = tf.math.top_k(logits, size)
    forbidden = tf.reduce_any(
        # Not sliced: LiteRT has no slice of two axes that makes a third.
        tf.equal(tf.expand_dims(ids, 2), tf.expand_dims(forbidden_ids, 1)),
        axis=2,
    )
    # A row that is all minus infinity has that as its normalizer too, and
    # their difference would be NaN.
    possible = tf.logical_and(values > IMPOSSIBLE, tf.logical_not(forbidden))
    log_probs = values - log_normalizer(logits)
    return tf.where(possible, log_probs, IMPOSSIBLE), ids


def log_prob_of(logits, token_ids):
    """Looks up the log-probability of one id for each row of logits.

    Args:
        logits: float32 `(..., V)`.
        token_ids: int32 `(...)`.

    Returns:
        float32 `(...)`; minus infinity for an id that is impossible.
    """
    chosen = tf.gather(logits, token_ids, batch_dims=token_ids.shape.rank)
    log_prob = chosen - tf.squeeze(log_normalizer(logits), axis=-1)
    return tf.where(chosen > IMPOSSIBLE, log_prob, IMPOSSIBLE)


def which_occur(token_ids, vocab_size, counts=True):
    """Marks the ids of a vocabulary that are among some.

    Counted, because runtimes differ in what they do where one place is
    written twice; there is no such doubt about a count above 0.

    Args:
        token_ids: int32 `(R, M)`, each in [0, `V`).
        vocab_size: int or int32 scalar, `V`.
        counts: bool, broadcasts to `(R, M)`, which of them count.

    Returns:
        bool `(R, V)`.
    """
    rows = tf.range(tf.shape(token_ids)[0])[:, None] + tf.zeros_like(token_ids)
    places = tf.stack([rows, token_ids], axis=2)
    shape = tf.stack([tf.shape(token_ids)[0], vocab_size])
    amounts = tf.cast(counts, tf.int32) + tf.zeros_like(token_ids)
    return tf.scatter_nd(places, amounts, shape) > 0


def mask_forbidden(logits, forbidden_ids, pad_id):
    """Makes forbidden ids impossible.

    Args:
        logits: float32 `(R, V)`.
        forbidden_ids: int32 `(R, M)`, or `(1, M)` if all rows have the same;
            those outside the vocabulary forbid nothing.
        pad_id: int, forbidden in any case.

    Returns:
        float32 `(R, V)`, minus infinity where an id is forbidden.
    """
    vocab_size = tf.shape(logits)[1]
    known = (forbidden_ids >= 0) & (forbidden_ids < vocab_size)
    # What forbids nothing stands for pad.
    ids = tf.where(known, forbidden_ids, pad_id)
    ids = tf.concat([ids, tf.fill((tf.shape(ids)[0], 1), pad_id)], axis=1)
    return tf.where(which_occur(ids, vocab_size), IMPOSSIBLE, logits)
