"""The search that keeps one hypothesis a sentence.

Greedy search and sampling are this search; they differ only in the choice of
the next id.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.logits import IMPOSSIBLE
from keras_transformer.decoding.rows import search_rows
from keras_transformer.decoding.state import Hypotheses


class _Rows(NamedTuple):
    done: object  # (B,) bool
    token_ids: object  # (B, t + 1) int32, bos first
    scores: object  # (B,) float32
    lengths: object  # (B,) int32
    finished: object  # (B,) bool


def single_search(
    step, choose, state, facts, max_lengths, *, pad_id, bos_id, eos_id
):
    """Extends each sentence by one chosen id after the other until eos.

    Args:
        step: function `(token_ids, position, state) -> (logits, state)`; see
            `keras_transformer.decoding.state`.
        choose: function `(logits, token_ids, position, facts)`, with logits
            float32 `(B, V)` and token_ids int32 `(B, t + 1)`, bos first; it
            gives the log-probabilities of the next ids, float32 `(B,)`, minus
            infinity where none is possible, and the ids, int32 `(B,)`.
        state: `SearchState` of `B` rows.
        facts: nest of tensors `(B, ...)` that `choose` looks at.
        max_lengths: int32 `(B,)`.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.

    Returns:
        `Hypotheses`. A row that comes to a step at which no id is possible
        has length 0 and score minus infinity.
    """
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)

    def advance(position, rows, facts, state):
        max_lengths, facts = facts
        logits, state = step(rows.token_ids[:, -1], position, state)
        log_probs, next_ids = choose(
            tf.cast(logits, tf.float32), rows.token_ids, position, facts
        )
        active = tf.logical_not(rows.done)
        next_ids = tf.where(active, next_ids, pad_id)
        scores = rows.scores + tf.where(active, log_probs, 0.0)
        ends = active & (next_ids == eos_id)
        dead = tf.equal(scores, IMPOSSIBLE)
        rows = _Rows(
            done=rows.done | ends | dead | (position + 1 >= max_lengths),
            token_ids=tf.concat([rows.token_ids, next_ids[:, None]], axis=1),
            scores=scores,
            lengths=rows.lengths + tf.cast(active, tf.int32),
            finished=rows.finished | ends,
        )
        return rows, state

    rows = _Rows(
        done=max_lengths <= 0,
        token_ids=tf.fill((tf.size(max_lengths), 1), bos_id),
        scores=tf.zeros_like(max_lengths, tf.float32),
        lengths=tf.zeros_like(max_lengths),
        finished=tf.zeros_like(max_lengths, tf.bool),
    )

    def collect(position, rows, facts):
        # As in beam search, a row that came to a dead end has no hypothesis.
        alive = rows.scores > IMPOSSIBLE
        return Hypotheses(
            tf.where(alive[:, None], rows.token_ids, pad_id),
            tf.where(alive, rows.lengths, 0),
            rows.scores,
            rows.finished & alive,
        )

    return search_rows(
        advance, collect, rows, (max_lengths, facts), state, pad_id
    )
