"""Greedy search: always the likeliest next id."""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.logits import (
    IMPOSSIBLE,
    allowed_candidates,
    forbid_early_eos,
)
from keras_transformer.decoding.state import Hypotheses, loop_shapes


class _Loop(NamedTuple):
    position: object  # () int32
    token_ids: object  # (B, t + 1) int32, bos first
    scores: object  # (B,) float32
    lengths: object  # (B,) int32
    finished: object  # (B,) bool
    state: object


def greedy_search(
    step,
    state,
    max_lengths,
    *,
    min_length=0,
    pad_id=0,
    bos_id=1,
    eos_id=2,
    forbidden_ids=None,
):
    """Extends each sentence by its likeliest next id until eos.

    Ties go to the lower id. Rows are independent: what one generates does
    not depend on the others. A row that comes to a step at which no id is
    possible has no hypothesis: length 0, score minus infinity.

    Args:
        step: function `(token_ids, position, state) -> (logits, state)`; see
            `keras_transformer.decoding.state`.
        state: `SearchState` of `B` rows.
        max_lengths: int32 `(B,)`, the largest length of each row; 0 and less
            generates nothing.
        min_length: int or int32 scalar; eos is not allowed earlier.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.
        forbidden_ids: sequence of ids that are never generated; by default
            `pad_id` and `bos_id`.

    Returns:
        `Hypotheses`; scores are plain log-probabilities of the model.

    Example:

    A model that counts up from 3 to 5 and then stops:

    >>> from keras_transformer.decoding import SearchState
    >>> table = np.full((6, 6), -9.0, "float32")
    >>> table[1, 3] = table[3, 4] = table[4, 5] = table[5, 2] = 9.0
    >>> def step(token_ids, position, state):
    ...     return tf.gather(table, token_ids), state
    >>> result = greedy_search(step, SearchState(), tf.constant([8, 2]))
    >>> print(result.token_ids.numpy())
    [[3 4 5 2]
     [3 4 0 0]]
    >>> print(result.lengths.numpy(), result.finished.numpy())
    [4 2] [ True False]
    """
    if forbidden_ids is None:
        forbidden_ids = (pad_id, bos_id)
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)

    def unfinished(loop):
        possible = loop.scores > IMPOSSIBLE
        within = loop.position < max_lengths
        return possible & within & tf.logical_not(loop.finished)

    def body(loop):
        logits, state = step(loop.token_ids[:, -1], loop.position, loop.state)
        log_probs, ids = allowed_candidates(
            tf.cast(logits, tf.float32),
            1,
            forbid_early_eos(forbidden_ids, eos_id, loop.position, min_length),
        )
        log_prob, best = tf.math.top_k(log_probs, 1)
        log_prob = log_prob[:, 0]
        next_ids = tf.gather(ids, best, batch_dims=1)[:, 0]
        active = unfinished(loop)
        next_ids = tf.where(active, next_ids, pad_id)
        return _Loop(
            position=loop.position + 1,
            token_ids=tf.concat([loop.token_ids, next_ids[:, None]], axis=1),
            scores=loop.scores + tf.where(active, log_prob, 0.0),
            lengths=loop.lengths + tf.cast(active, tf.int32),
            finished=tf.logical_or(
                loop.finished, tf.logical_and(active, next_ids == eos_id)
            ),
            state=state,
        )

    start = _Loop(
        position=tf.constant(0),
        token_ids=tf.fill((tf.size(max_lengths), 1), bos_id),
        scores=tf.zeros_like(max_lengths, tf.float32),
        lengths=tf.zeros_like(max_lengths),
        finished=tf.zeros_like(max_lengths, tf.bool),
        state=state,
    )
    end = tf.while_loop(
        lambda *loop: tf.reduce_any(unfinished(_Loop(*loop))),
        lambda *loop: tuple(body(_Loop(*loop))),
        tuple(start),
        shape_invariants=tuple(
            loop_shapes(start)._replace(token_ids=tf.TensorShape([None, None]))
        ),
    )
    end = _Loop(*end)
    # As in beam search, a row that came to a dead end has no hypothesis.
    dead = tf.equal(end.scores, IMPOSSIBLE)
    lengths = tf.where(dead, 0, end.lengths)
    token_ids = tf.where(dead[:, None], pad_id, end.token_ids[:, 1:])
    longest = tf.reduce_max(tf.concat([lengths, [0]], axis=0))
    return Hypotheses(
        tf.gather(token_ids, tf.range(longest), axis=1),
        lengths,
        end.scores,
        end.finished & tf.logical_not(dead),
    )
