"""The search that keeps one hypothesis a sentence.

Greedy search and sampling are this search; they differ only in the choice of
the next id.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.logits import IMPOSSIBLE
from keras_transformer.decoding.loop import run_search
from keras_transformer.decoding.search_state import (
    Hypotheses,
    count_ids,
    take_step,
)


def search_one_hypothesis(
    step, choose, state, fixed, max_lengths, *, pad_id, bos_id, eos_id
):
    """Extends each sentence by one chosen id after the other until eos.

    Args:
        step: function; see `keras_transformer.decoding.search_state`.
        choose: function `(logits, token_ids, position, fixed)`, with logits
            float32 `(B, V)` and token_ids int32 `(B, t + 1)`, bos first; it
            gives the log-probabilities of the next ids, float32 `(B,)`, minus
            infinity where none is possible, and the ids, int32 `(B,)`.
        state: `SearchState` of `B` rows.
        fixed: nest of tensors `(B, ...)` that `choose` looks at.
        max_lengths: int32 `(B,)`.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.

    Returns:
        `Hypotheses`. A row that comes to a step at which no id is possible
        has length 0 and score minus infinity.
    """
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    rows = _Rows(
        done=max_lengths <= 0,
        token_ids=tf.fill((tf.size(max_lengths), 1), bos_id),
        scores=tf.zeros_like(max_lengths, tf.float32),
    )
    search = _OneHypothesis(step, choose, pad_id, eos_id)
    return run_search(search, rows, (max_lengths, fixed), state, pad_id)


class _Rows(NamedTuple):
    done: object  # (B,) bool
    token_ids: object  # (B, t + 1) int32, bos first
    scores: object  # (B,) float32


class _OneHypothesis(NamedTuple):
    """The search, as `run_search` takes it."""

    step: object
    choose: object
    pad_id: int
    eos_id: int

    def prepare(self, rows):
        return None

    def advance(self, position, rows, prepared, fixed, state):
        max_lengths, fixed = fixed
        last_ids = tf.gather(rows.token_ids, position, axis=1)
        logits, state, _ = take_step(self.step, last_ids, position, state)
        log_probs, next_ids = self.choose(
            logits, rows.token_ids, position, fixed
        )
        next_ids = tf.where(rows.done, self.pad_id, next_ids)
        scores = rows.scores + tf.where(rows.done, 0.0, log_probs)
        ends = tf.equal(next_ids, self.eos_id)
        dead = tf.equal(scores, IMPOSSIBLE)
        rows = _Rows(
            rows.done | ends | dead | (position + 1 >= max_lengths),
            tf.concat([rows.token_ids, next_ids[:, None]], axis=1),
            scores,
        )
        return rows, state

    def collect(self, rows):
        # As in beam search, a row that came to a dead end has no hypothesis.
        alive = (rows.scores > IMPOSSIBLE)[:, None]
        ids = tf.where(alive, rows.token_ids, self.pad_id)
        lengths, finished = count_ids(ids, self.pad_id, self.eos_id)
        return Hypotheses(ids, lengths, rows.scores, finished)
