"""A forced start: ids that a row must generate first."""

import tensorflow as tf

from keras_transformer.decoding.logits import IMPOSSIBLE, log_prob_of

_FREE = -1


def forced_ids(target_prefix, batch, pad_id):
    """Prepares the forced start of each row.

    Args:
        target_prefix: int32 `(B, P)`, ids to generate first, padded at the
            end; `(1, P)` if they are the same for all rows; or None.
        batch: int32 scalar, `B`.
        pad_id: int.

    Returns:
        int32 `(B, P + 1)`: up to the first padding the ids, then -1, "free".
    """
    if target_prefix is None:
        return tf.fill((batch, 1), _FREE)
    padding = tf.fill((batch, 1), pad_id)
    width = tf.shape(target_prefix)[1]
    ids = tf.concat([target_prefix + tf.zeros_like(padding), padding], axis=1)
    places = tf.range(width + 1)[None, :]
    lengths = tf.reduce_min(
        tf.where(ids == pad_id, places, width), axis=1, keepdims=True
    )
    return tf.where(places < lengths, ids, _FREE)


def prefix_length(forced):
    """Gives the largest number of ids that a row may be forced to.

    Args:
        forced: int32 `(B, P + 1)` of `forced_ids`.

    Returns:
        int32 scalar, `P`; Python's 0 if no prefix was given.
    """
    return 0 if forced.shape[1] == 1 else tf.shape(forced)[1] - 1


def forced_at(position, forced):
    """Gives the forced id of each row at a position, or -1: int32 `(B,)`."""
    last = tf.shape(forced)[1] - 1
    return tf.gather(forced, tf.minimum(position, last), axis=1)


def force(forced, logits, log_probs, ids):
    """Leaves a row that is forced one candidate, the first.

    Args:
        forced: int32 `(R,)`, the forced ids, -1 where a row is free.
        logits: float32 `(R, V)`.
        log_probs: float32 `(R, C)`, candidates of free rows.
        ids: int32 `(R, C)`.

    Returns:
        `log_probs` and `ids` of the same shapes.
    """
    is_forced = (forced != _FREE)[:, None]
    log_prob = log_prob_of(logits, tf.maximum(forced, 0))[:, None]
    first = tf.range(tf.shape(ids)[1])[None, :] == 0
    return (
        tf.where(is_forced, tf.where(first, log_prob, IMPOSSIBLE), log_probs),
        tf.where(is_forced, forced[:, None], ids),
    )
