"""The two sets of hypotheses that beam search keeps, and how they change.

Alive hypotheses are extended; finished ones end in eos and never change
again. As in the paper's authors' own code, there are `K` of each.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.logits import IMPOSSIBLE
from keras_transformer.decoding.loop import when
from keras_transformer.decoding.penalties import coverage_penalty
from keras_transformer.decoding.search_state import Hypotheses, count_ids


class BeamSets(NamedTuple):
    """The sets of `B` sentences.

    done: bool `(B,)`, whether nothing can change any more.
    token_ids: int32 `(B, 2 * K, t + 1)`, bos first: the alive hypotheses, then
        the finished ones.
    alive_log_probs: float32 `(B, K)`, best first; -inf is an empty slot.
    finished_scores: float32 `(B, K)`, best first; -inf is an empty slot.
    coverage: float32 `(B, K, S)`, the sum of what each alive hypothesis
        attended to; `(B, K, 1)` and 0 while nobody asks.
    """

    done: object
    token_ids: object
    alive_log_probs: object
    finished_scores: object
    coverage: object


class Caps(NamedTuple):
    """Where sentences are cut.

    max_lengths: int32 `(B,)`, the largest length of each.
    penalties: float32 `(B,)`, the length penalty at it.
    """

    max_lengths: object
    penalties: object


class Slots(NamedTuple):
    """The places of the hypotheses of `B` sentences, as long as none leaves.

    alive: int32 `(K,)`, those of the alive ones.
    places: int32 `(B, 2 * K)`, those of all.
    may_finish: bool `(B, 2 * K)`, whether a candidate of that rank may
        finish a hypothesis.
    padding: int32 `(B, 2 * K)`, pad in each.
    rows: int32 `(B, 1)`, the row `b * K` of the first hypothesis of each.
    flat_shape: int32 `(2,)`, `(B, -1)`.
    """

    alive: object
    places: object
    may_finish: object
    padding: object
    rows: object
    flat_shape: object


class BeamRules:
    """How the sets change from one step to the next.

    Args:
        beam_size: int32 scalar, `K`.
        num_hypotheses: int32 scalar, `N`.
        length_penalty: `LengthPenalty`.
        coverage_penalty: float or float32 scalar, of `coverage_penalty`.
        early_stopping: bool scalar, whether a sentence is done once `K`
            hypotheses have finished.
        pad_id: int.
        eos_id: int.
    """

    def __init__(
        self,
        beam_size,
        num_hypotheses,
        length_penalty,
        coverage_penalty,
        early_stopping,
        pad_id,
        eos_id,
    ):
        self.beam_size = beam_size
        self.num_hypotheses = num_hypotheses
        self.length_penalty = length_penalty
        self.coverage_penalty = coverage_penalty
        self.early_stopping = early_stopping
        self.pad_id = pad_id
        self.eos_id = eos_id
        # What is the same in all steps is made here, outside of the loop.
        self._is_covering = coverage_penalty != 0
        self._last_needed = (
            tf.where(early_stopping, beam_size, num_hypotheses) - 1
        )
        self._num_slots = 2 * beam_size
        # From the place among the candidates, or among the finished ones and
        # the candidates, to that among all slots and the candidates.
        self._offsets = tf.repeat([2 * beam_size, beam_size], beam_size)

    def start(self, max_lengths, bos_id):
        """One alive hypothesis a sentence, bos; the other slots are empty."""
        batch = tf.size(max_lengths)
        empty = tf.fill((batch, self.beam_size), IMPOSSIBLE)
        first = tf.zeros((batch, 1), tf.float32)
        return BeamSets(
            done=max_lengths <= 0,
            token_ids=tf.fill((batch, self._num_slots, 1), bos_id),
            alive_log_probs=tf.concat([first, empty[:, 1:]], axis=1),
            finished_scores=empty,
            coverage=tf.zeros((batch, self.beam_size, 1)),
        )

    def slots(self, sets):
        """Gives the `Slots` of running sentences."""
        shape = (tf.size(sets.done), self._num_slots)
        places = tf.broadcast_to(tf.range(self._num_slots), shape)
        return Slots(
            alive=tf.range(self.beam_size),
            places=places,
            may_finish=places < self.beam_size,
            padding=tf.fill(shape, self.pad_id),
            rows=tf.range(shape[0])[:, None] * self.beam_size,
            flat_shape=tf.stack([shape[0], -1]),
        )

    def extend(self, sets, slots, length, caps, log_probs, ids, attention):
        """Takes one step.

        Args:
            sets: `BeamSets` before it.
            slots: `Slots`.
            length: int32 scalar, number of ids generated after it.
            caps: `Caps`.
            log_probs: float32 `(R, C)`, of candidates for the next id of each
                alive hypothesis; `C` is at least 2.
            ids: int32 `(R, C)`.
            attention: float `(B, H, K, S)`, of the step; or None if the model
                gives none.

        Returns:
            `BeamSets`, and int32 `(R,)`, for each alive hypothesis the row
            that it extends.

        Raises:
            ValueError: if there is no attention though the coverage penalty
                may be on.
        """
        # One for this length, one for the next.
        penalties = self.length_penalty(length + tf.constant([0, 1]))
        done = sets.done[:, None]
        best = self._rank(sets, slots, log_probs, ids)
        scores, coverage = self._cover(
            sets, best.log_probs / penalties[0], best.parents, attention
        )
        alive_log_probs, survivors = self._survive(sets, done, best)
        finished_scores, finishers = self._finish(
            sets, slots, done, best, scores
        )
        token_ids, parents = self._reorder(
            sets, slots, done, best, tf.concat([survivors, finishers], axis=1)
        )
        if self._may_cover():
            coverage = tf.gather(coverage, parents, batch_dims=1)
        sets = BeamSets(
            sets.done
            | self._is_done(
                alive_log_probs, finished_scores, length, penalties[1], caps
            ),
            token_ids,
            alive_log_probs,
            finished_scores,
            coverage,
        )
        return sets, tf.reshape(parents + slots.rows, (-1,))

    def _rank(self, sets, slots, log_probs, ids):
        """Ranks the extensions of all alive hypotheses of a sentence."""
        width = tf.shape(ids)[1]
        log_probs += tf.reshape(sets.alive_log_probs, (-1, 1))
        best, index = tf.math.top_k(
            tf.reshape(log_probs, slots.flat_shape), self._num_slots
        )
        ids = tf.gather(tf.reshape(ids, slots.flat_shape), index, batch_dims=1)
        ends = tf.equal(ids, self.eos_id)
        return _Candidates(best, index // width, ids, ends)

    def _survive(self, sets, done, best):
        """Keeps the best candidates that do not end: alive hypotheses."""
        log_probs, survivors = tf.math.top_k(
            tf.where(best.ends, IMPOSSIBLE, best.log_probs), self.beam_size
        )
        return tf.where(done, sets.alive_log_probs, log_probs), survivors

    def _finish(self, sets, slots, done, best, scores):
        """Lets candidates that end compete with those that finished before.

        An eos finishes a hypothesis only from among the best K.
        """
        finishes = slots.may_finish & best.ends & tf.logical_not(done)
        new_scores = tf.where(finishes, scores, IMPOSSIBLE)
        return tf.math.top_k(
            tf.concat([sets.finished_scores, new_scores], axis=1),
            self.beam_size,
        )

    def _reorder(self, sets, slots, done, best, chosen):
        """Moves the ids of what was chosen to its slots.

        Each new slot is an old one as it was (below 2K), or a candidate.
        """
        chosen = tf.where(done, slots.places, chosen + self._offsets)
        origins = tf.gather(
            tf.concat([slots.places, best.parents], axis=1),
            chosen,
            batch_dims=1,
        )
        new_ids = tf.gather(
            tf.concat([slots.padding, best.token_ids], axis=1),
            chosen,
            batch_dims=1,
        )
        token_ids = tf.gather(sets.token_ids, origins, batch_dims=1)
        token_ids = tf.concat([token_ids, tf.expand_dims(new_ids, 2)], axis=2)
        return token_ids, tf.gather(origins, slots.alive, axis=1)

    def _cover(self, sets, scores, parents, attention):
        """Adds the attention of a step, and what it costs, if anybody asks."""
        if not self._may_cover():
            return scores, sets.coverage
        if attention is None:
            raise ValueError(
                "coverage_penalty needs a step function that gives attention, "
                f"got coverage_penalty={self.coverage_penalty!r} and no "
                "attention"
            )

        def cover():
            attended = tf.reduce_mean(tf.cast(attention, tf.float32), axis=1)
            coverage = tf.where(
                sets.done[:, None, None],
                sets.coverage,
                sets.coverage + attended,
            )
            missed = coverage_penalty(coverage, self.coverage_penalty)
            return scores + tf.gather(missed, parents, batch_dims=1), coverage

        # Copies: of a branch that hands on what it was given, converters lose
        # the shape.
        return when(
            self._is_covering,
            cover,
            lambda: (scores + 0.0, sets.coverage + 0.0),
        )

    def _may_cover(self):
        return tf.is_tensor(self._is_covering) or self._is_covering

    def _is_done(self, alive_log_probs, finished_scores, length, penalty, caps):
        """Tells where no alive hypothesis can enter the best finished ones.

        A log-probability only falls, and the length penalty is monotonic in
        the length, so the best score an alive hypothesis can still reach is
        its present log-probability over the penalty of the next length or of
        the last, whichever is better; which one that is depends on the sign
        of alpha. A coverage penalty is at best 0. Where none is alive the
        bound is minus infinity, which any score reaches.
        """
        best_alive = tf.gather(alive_log_probs, 0, axis=1)
        bound = tf.maximum(best_alive / penalty, best_alive / caps.penalties)
        worst = tf.gather(finished_scores, self._last_needed, axis=1)
        enough = (worst > IMPOSSIBLE) & self.early_stopping
        return (worst >= bound) | enough | (length >= caps.max_lengths)

    def best(self, sets):
        """Lists finished hypotheses, then those cut at the largest length.

        Args:
            sets: `BeamSets`.

        Returns:
            `Hypotheses` `(B, N, ...)`, bos first in each.
        """
        alive = tf.range(self.beam_size)
        lengths, _ = count_ids(sets.token_ids, self.pad_id, self.eos_id)
        alive_scores = sets.alive_log_probs / self.length_penalty(
            tf.gather(lengths, alive, axis=1)
        )
        alive_scores += coverage_penalty(sets.coverage, self.coverage_penalty)
        alive_scores, order = tf.math.top_k(alive_scores, self.beam_size)
        scores = tf.concat([sets.finished_scores, alive_scores], axis=1)
        places = tf.concat(
            [self.beam_size + alive + tf.zeros_like(order), order], axis=1
        )

        num_finished = tf.reduce_sum(
            tf.cast(sets.finished_scores > IMPOSSIBLE, tf.int32), axis=1
        )[:, None]
        ranks = tf.range(self.num_hypotheses)[None, :]
        finished = ranks < num_finished
        index = tf.where(finished, ranks, self.beam_size + ranks - num_finished)

        scores = tf.gather(scores, index, batch_dims=1)
        places = tf.gather(places, index, batch_dims=1)
        empty = tf.equal(scores, IMPOSSIBLE)
        lengths = tf.gather(lengths, places, batch_dims=1)
        ids = tf.gather(sets.token_ids, places, batch_dims=1)
        ids = tf.where(tf.expand_dims(empty, 2), self.pad_id, ids)
        return Hypotheses(ids, tf.where(empty, 0, lengths), scores, finished)


class _Candidates(NamedTuple):
    log_probs: object  # (B, 2K) float32, best first
    parents: object  # (B, 2K) int32, which alive hypothesis each extends
    token_ids: object  # (B, 2K) int32
    ends: object  # (B, 2K) bool, whether that is eos
