"""From logits to the candidates for the next id."""

import tensorflow as tf

# The log-probability of what cannot be.
IMPOSSIBLE = float("-inf")

# `likeliest` divides larger vocabularies, into blocks for so many ids.
_SMALLEST_TO_DIVIDE = 2048
_USUAL_COUNT = 8


def log_normalizer(logits, largest=None):
    """Computes what a log-probability is less than its logit: logsumexp.

    Args:
        logits: float32 `(..., V)`.
        largest: float32 `(..., 1)`, the largest of each row, if it is known;
            where it is infinite the result is no number.

    Returns:
        float32 `(..., 1)`.
    """
    # As tf.reduce_logsumexp, with fewer operators: this is in every step.
    if largest is None:
        largest = tf.reduce_max(logits, axis=-1, keepdims=True)
        largest = tf.where(tf.abs(largest) < -IMPOSSIBLE, largest, 0.0)
    rest = tf.reduce_sum(tf.exp(logits - largest), axis=-1, keepdims=True)
    return tf.math.log(rest) + largest


def allowed_candidates(logits, count, forbidden_ids):
    """Finds the likeliest allowed ids of each row.

    Looking at more ids than are wanted takes less time than masking the whole
    vocabulary, which would copy `(R, V)` at every step.

    Args:
        logits: float32 `(R, V)`.
        count: int or int32 scalar, how many ids to look at: those that are
            wanted, and as many as are forbidden.
        forbidden_ids: int32 `(R, M)`, or `(1, M)` if all rows have the same;
            -1 forbids nothing.

    Returns:
        log-probabilities float32 `(R, C)` and ids int32 `(R, C)`, likeliest
        first, ties by lower id, `C = min(count, V)`. The probabilities
        are those of all logits, forbidden ids included; a candidate that is
        forbidden or impossible has minus infinity, and may stand anywhere.
    """
    values, ids = likeliest(logits, count)
    forbidden = tf.reduce_any(
        # Not sliced: LiteRT has no slice of two axes that makes a third.
        tf.equal(tf.expand_dims(ids, 2), tf.expand_dims(forbidden_ids, 1)),
        axis=2,
    )
    # Of a row that is all minus infinity the normalizer is no number.
    possible = tf.logical_and(values > IMPOSSIBLE, tf.logical_not(forbidden))
    largest = tf.gather(values, [0], axis=1)
    log_probs = values - log_normalizer(logits, largest)
    return tf.where(possible, log_probs, IMPOSSIBLE), ids


def likeliest(logits, count):
    """Finds the largest logits of each row, as `tf.math.top_k`.

    Of a large vocabulary only the blocks of ids with the largest maxima are
    looked at, as many as ids are wanted, for no other can hold one: maxima
    take less time than a sort.

    Args:
        logits: float32 `(R, V)`.
        count: int or int32 scalar; more than `V` counts as `V`.

    Returns:
        float32 `(R, C)` and ids int32 `(R, C)`, largest first, ties by lower
        id.
    """
    width = _block_width(logits.shape[1])
    if width == 1:
        return tf.math.top_k(logits, tf.minimum(count, tf.shape(logits)[1]))
    num_blocks = logits.shape[1] // width
    blocks = tf.reshape(logits, (-1, num_blocks, width))
    _, best = tf.math.top_k(
        tf.reduce_max(blocks, axis=2), tf.minimum(count, num_blocks)
    )
    # In the order of their ids again, which decides between equal logits.
    best = -tf.math.top_k(-best, tf.shape(best)[1]).values
    values, index = tf.math.top_k(
        tf.reshape(
            tf.gather(blocks, best, batch_dims=1),
            tf.stack([-1, tf.shape(best)[1] * width]),
        ),
        tf.minimum(count, logits.shape[1]),
    )
    first_ids = tf.gather(best, index // width, batch_dims=1) * width
    return values, first_ids + index % width


def _block_width(vocab_size):
    """Gives the divisor of `V` for which the two sorts are shortest; 1 if
    none is worth it, or nobody knows `V`.
    """
    if vocab_size is None or vocab_size < _SMALLEST_TO_DIVIDE:
        return 1
    return min(
        (width for width in range(1, 257) if vocab_size % width == 0),
        key=lambda width: vocab_size / width + _USUAL_COUNT * width,
    )


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
