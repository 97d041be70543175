"""The two sets of hypotheses that beam search keeps for each sentence.

Alive hypotheses are extended; finished ones end in eos and never change
again. As in the paper's authors' own code, there are `K` of each.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.constraints import when
from keras_transformer.decoding.logits import IMPOSSIBLE
from keras_transformer.decoding.penalties import coverage_penalty
from keras_transformer.decoding.state import Hypotheses


class BeamSets(NamedTuple):
    """The sets of `B` sentences.

    done: bool `(B,)`, whether nothing can change any more.
    alive_ids: int32 `(B, K, t + 1)`, bos first.
    alive_log_probs: float32 `(B, K)`, best first; -inf is an empty slot.
    finished_ids: int32 `(B, K, t + 1)`, bos first.
    finished_scores: float32 `(B, K)`, best first; -inf is an empty slot.
    finished_lengths: int32 `(B, K)`.
    coverage: float32 `(B, K, S)`, the sum of what each alive hypothesis
        attended to; `(B, K, 1)` and 0 while nobody asks.
    """

    done: object
    alive_ids: object
    alive_log_probs: object
    finished_ids: object
    finished_scores: object
    finished_lengths: object
    coverage: object


class Caps(NamedTuple):
    """Where sentences are cut.

    max_lengths: int32 `(B,)`, the largest length of each.
    penalties: float32 `(B,)`, the length penalty at it.
    """

    max_lengths: object
    penalties: object


class BeamRules(NamedTuple):
    """How the sets change from one step to the next.

    beam_size: int32 scalar, `K`.
    num_hypotheses: int32 scalar, `N`.
    length_penalty: `LengthPenalty`.
    coverage_penalty: float or float32 scalar, of `coverage_penalty`.
    early_stopping: bool scalar, whether a sentence is done once `K`
        hypotheses have finished.
    pad_id: int.
    eos_id: int.
    """

    beam_size: object
    num_hypotheses: object
    length_penalty: object
    coverage_penalty: object
    early_stopping: object
    pad_id: int
    eos_id: int

    def start(self, max_lengths, bos_id):
        """One alive hypothesis a sentence, bos; the other slots are empty."""
        batch = tf.size(max_lengths)
        slots = tf.zeros((batch, self.beam_size), tf.float32)
        first = tf.zeros((batch, 1), tf.float32)
        ids = tf.fill((batch, self.beam_size, 1), bos_id)
        return BeamSets(
            done=max_lengths <= 0,
            alive_ids=ids,
            alive_log_probs=tf.concat(
                [first, slots[:, 1:] + IMPOSSIBLE], axis=1
            ),
            finished_ids=ids,
            finished_scores=slots + IMPOSSIBLE,
            finished_lengths=tf.cast(slots, tf.int32),
            coverage=tf.expand_dims(slots, 2),
        )

    def extend(self, sets, length, caps, log_probs, ids):
        """Takes one step.

        Args:
            sets: `BeamSets` before it.
            length: int32 scalar, number of ids generated after it.
            caps: `Caps`.
            log_probs: float32 `(R, C)`, of candidates for the next id of each
                alive hypothesis.
            ids: int32 `(R, C)`.

        Returns:
            `BeamSets`, and int32 `(R,)`, for each alive hypothesis the row
            that it extends.
        """
        candidates = self._rank(sets, log_probs, ids)
        sets = self._finish(sets, candidates, length)
        sets, parents = self._survive(sets, candidates)
        done = self._cannot_improve(sets, length, caps)
        return sets._replace(done=sets.done | done), parents

    def cover(self, sets, attention):
        """Adds the attention of a step to what was attended to before.

        Args:
            sets: `BeamSets`.
            attention: float `(B, H, K, S)`, or () if the model gives none.

        Returns:
            `BeamSets`.

        Raises:
            ValueError: if there is none though the penalty may be on.
        """
        if not self._may_cover():
            return sets
        if isinstance(attention, tuple):
            raise ValueError(
                "coverage_penalty needs a step function whose state has "
                "attention, got coverage_penalty="
                f"{self.coverage_penalty!r} and no attention"
            )

        def add():
            attended = tf.reduce_mean(tf.cast(attention, tf.float32), axis=1)
            return tf.where(
                sets.done[:, None, None],
                sets.coverage,
                sets.coverage + attended,
            )

        # A copy: of a branch that hands on what it was given, converters lose
        # the shape.
        return sets._replace(
            coverage=when(
                self.coverage_penalty != 0.0, add, lambda: sets.coverage + 0.0
            )
        )

    def _may_cover(self):
        return tf.is_tensor(self.coverage_penalty) or self.coverage_penalty != 0

    def _rank(self, sets, log_probs, ids):
        """Ranks the extensions of all alive hypotheses of a sentence."""
        batch = tf.shape(sets.alive_log_probs)[0]
        width = tf.shape(ids)[1]
        log_probs += tf.reshape(sets.alive_log_probs, (-1, 1))
        flat = (batch, self.beam_size * width)
        best, index = tf.math.top_k(
            tf.reshape(log_probs, flat), tf.minimum(2, width) * self.beam_size
        )
        ids = tf.gather(tf.reshape(ids, flat), index, batch_dims=1)
        return _Candidates(best, index // width, ids)

    def _finish(self, sets, candidates, length):
        """Merges the hypotheses that end now into the finished set."""
        # gather rather than a slice, as in rows.py.
        log_probs, parents, token_ids = (
            tf.gather(field, tf.range(self.beam_size), axis=1)
            for field in candidates
        )
        scores = log_probs / self.length_penalty(length)
        if self._may_cover():
            missed = coverage_penalty(sets.coverage, self.coverage_penalty)
            scores += tf.gather(missed, parents, batch_dims=1)
        ends = (token_ids == self.eos_id) & tf.logical_not(sets.done)[:, None]
        new_ids = _append(
            tf.gather(sets.alive_ids, parents, batch_dims=1), token_ids
        )
        padding = tf.fill(tf.shape(parents), self.pad_id)
        old_ids = _append(sets.finished_ids, padding)
        scores, index = tf.math.top_k(
            tf.concat(
                [sets.finished_scores, tf.where(ends, scores, IMPOSSIBLE)], 1
            ),
            self.beam_size,
        )
        lengths = tf.concat(
            [sets.finished_lengths, tf.fill(tf.shape(parents), length)], 1
        )
        return sets._replace(
            finished_scores=scores,
            finished_ids=tf.gather(
                tf.concat([old_ids, new_ids], axis=1), index, batch_dims=1
            ),
            finished_lengths=tf.gather(lengths, index, batch_dims=1),
        )

    def _survive(self, sets, candidates):
        """Keeps the best extensions that do not end; done ones stay put."""
        batch = tf.shape(sets.alive_log_probs)[0]
        ends = candidates.token_ids == self.eos_id
        log_probs, index = tf.math.top_k(
            tf.where(ends, IMPOSSIBLE, candidates.log_probs), self.beam_size
        )
        done = sets.done[:, None]
        slots = tf.range(self.beam_size)[None, :]
        parents = tf.where(
            done, slots, tf.gather(candidates.parents, index, batch_dims=1)
        )
        token_ids = tf.where(
            done,
            self.pad_id,
            tf.gather(candidates.token_ids, index, batch_dims=1),
        )
        coverage = sets.coverage
        if self._may_cover():
            coverage = tf.gather(coverage, parents, batch_dims=1)
        sets = sets._replace(
            alive_log_probs=tf.where(done, sets.alive_log_probs, log_probs),
            alive_ids=_append(
                tf.gather(sets.alive_ids, parents, batch_dims=1), token_ids
            ),
            coverage=coverage,
        )
        rows = parents + tf.range(batch)[:, None] * self.beam_size
        return sets, tf.reshape(rows, (-1,))

    def _cannot_improve(self, sets, length, caps):
        """Tells where no alive hypothesis can enter the best finished ones.

        A log-probability only falls, and the length penalty is monotonic in
        the length, so the best score an alive hypothesis can still reach is
        its present log-probability over the penalty of the next length or of
        the last, whichever is better; which one that is depends on the sign
        of alpha. A coverage penalty is at best 0.
        """
        best_alive = sets.alive_log_probs[:, 0]
        bound = tf.maximum(
            best_alive / self.length_penalty(length + 1),
            best_alive / caps.penalties,
        )
        enough = tf.where(
            self.early_stopping, self.beam_size, self.num_hypotheses
        )
        worst = tf.gather(sets.finished_scores, enough - 1, axis=1)
        stops = (worst > IMPOSSIBLE) & (self.early_stopping | (worst >= bound))
        none_alive = best_alive == IMPOSSIBLE
        return (length >= caps.max_lengths) | none_alive | stops

    def best(self, sets, length, max_lengths):
        """Lists finished hypotheses, then those cut at the largest length.

        Returns:
            `Hypotheses` `(B, N, ...)`, bos first in each.
        """
        alive_lengths = tf.clip_by_value(max_lengths, 0, length)[:, None]
        alive_scores = sets.alive_log_probs / self.length_penalty(alive_lengths)
        alive_scores += coverage_penalty(sets.coverage, self.coverage_penalty)
        alive_scores, order = tf.math.top_k(alive_scores, self.beam_size)
        alive_ids = tf.gather(sets.alive_ids, order, batch_dims=1)

        scores = tf.concat([sets.finished_scores, alive_scores], axis=1)
        alive_lengths += tf.zeros_like(sets.finished_lengths)
        lengths = tf.concat([sets.finished_lengths, alive_lengths], axis=1)
        ids = tf.concat([sets.finished_ids, alive_ids], axis=1)

        num_finished = tf.reduce_sum(
            tf.cast(sets.finished_scores > IMPOSSIBLE, tf.int32), axis=1
        )[:, None]
        slots = tf.range(self.num_hypotheses)[None, :]
        finished = slots < num_finished
        index = tf.where(finished, slots, self.beam_size + slots - num_finished)

        scores = tf.gather(scores, index, batch_dims=1)
        empty = scores == IMPOSSIBLE
        lengths = tf.where(empty, 0, tf.gather(lengths, index, batch_dims=1))
        ids = tf.gather(ids, index, batch_dims=1)
        ids = tf.where(tf.expand_dims(empty, 2), self.pad_id, ids)
        return Hypotheses(ids, lengths, scores, finished)


class _Candidates(NamedTuple):
    log_probs: object  # (B, 2K) float32, best first
    parents: object  # (B, 2K) int32, which alive hypothesis each extends
    token_ids: object  # (B, 2K) int32


def _append(ids, token_ids):
    return tf.concat([ids, tf.expand_dims(token_ids, 2)], axis=2)
