"""What may come next: the options that greedy, beam and sampling share."""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.logits import (
    allowed_candidates,
    which_occur,
)
from keras_transformer.decoding.loop import when
from keras_transformer.decoding.option_checks import check_numbers
from keras_transformer.decoding.options import DEFAULTS
from keras_transformer.decoding.prefix import (
    force,
    forced_ids,
    prefix_length,
)


class Constraints(NamedTuple):
    """Options that change which ids may come next, and how likely they are.

    Each number may be a scalar tensor, so that one graph serves all values; if
    all are Python numbers and off, their work is left out. Whatever they say,
    pad is never generated, nor is bos, unless it is eos as well.

    min_length: int32; eos is not allowed earlier.
    no_repeat_ngram_size: int32, `n`: no `n` ids in a row occur twice in an
        output, see `repeated_ngrams`; 0 is off.
    repetition_penalty: float32, see `penalize_repetition`; 1 is off.
    target_prefix: int32 `(B, P)`, ids that each row must generate first,
        padded at the end, or `(1, P)` for all rows the same. What is forced is
        generated whatever the options but the largest length say. None forces
        nothing.
    forbidden_ids: sequence of ints, or int32 `(M,)`: never generated.
    """

    min_length: object = DEFAULTS["min_length"]
    no_repeat_ngram_size: object = DEFAULTS["no_repeat_ngram_size"]
    repetition_penalty: object = DEFAULTS["repetition_penalty"]
    target_prefix: object = None
    forbidden_ids: object = DEFAULTS["forbidden_ids"]


UNCONSTRAINED = Constraints()


class NextIds:
    """Constraints, made ready for the steps of one search.

    Args:
        constraints: `Constraints`.
        batch: int32 scalar, `B`.
        wanted: int or int32 scalar, how many candidates the search wants for
            each hypothesis.
        pad_id: int.
        bos_id: int.
        eos_id: int.

    Attributes:
        forced: int32 `(B, P + 1)`, of `forced_ids`.

    Raises:
        ValueError: if an option that is a Python number is out of its range,
            or `pad_id` is `eos_id`.
    """

    def __init__(self, constraints, batch, wanted, pad_id, bos_id, eos_id):
        options = constraints._asdict()
        check_numbers(**options)
        if pad_id == eos_id:
            raise ValueError(
                "pad_id must be another id than eos_id, for it is never "
                f"generated, got pad_id={pad_id}, eos_id={eos_id}"
            )
        self.constraints = constraints
        # What is the same in all steps is made here, outside of the loop.
        never = [pad_id] if bos_id == eos_id else [pad_id, bos_id]
        ids = tf.concat(
            [never, tf.cast(constraints.forbidden_ids, tf.int32)], axis=0
        )
        self._early = tf.concat([ids, [eos_id]], axis=0)[None, :]
        self._late = tf.concat([ids, [-1]], axis=0)[None, :]
        self._wanted = wanted
        self._looked_at = wanted + tf.size(self._late)
        self._looks_back = (constraints.no_repeat_ngram_size > 0) | (
            constraints.repetition_penalty != 1.0
        )
        self.forced = forced_ids(constraints.target_prefix, batch, pad_id)
        self._longest_prefix = prefix_length(self.forced)

    def choose(self, position, constrained, free):
        """Runs one of two functions, and builds but one where it is known.

        Args:
            position: int32 scalar, number of ids generated so far.
            constrained: function for where more than `forbidden` matters.
            free: function for where it does not.

        Returns:
            What the function gives.
        """
        active = self._looks_back
        if tf.is_tensor(self._longest_prefix):
            active |= position < self._longest_prefix
        return when(active, constrained, free)

    def forbidden(self, position):
        """Lists what no hypothesis may generate at a position.

        Args:
            position: int32 scalar, number of ids generated so far.

        Returns:
            int32 `(1, M)`, the last one eos, or -1 where it is allowed.
        """
        is_early = position + 1 < self.constraints.min_length
        return tf.where(is_early, self._early, self._late)

    def look_back(self, logits, token_ids, position):
        """Applies what depends on the ids that were generated before.

        Args:
            logits: float32 `(R, V)`.
            token_ids: int32 `(R, t + 1)`, bos first.
            position: int32 scalar, `t`.

        Returns:
            logits float32 `(R, V)`, and the forbidden ids of each row, int32
            `(R, M + t + 1)`.
        """
        always = self.forbidden(position) + tf.zeros_like(token_ids[:, :1])
        repeated = repeated_ngrams(
            token_ids, self.constraints.no_repeat_ngram_size
        )
        logits = penalize_repetition(
            logits, token_ids, self.constraints.repetition_penalty
        )
        return logits, tf.concat([always, repeated], axis=1)

    def free_candidates(self, logits, position):
        """Finds the candidates where nothing but `forbidden` matters.

        Args:
            logits: float32 `(R, V)`.
            position: int32 scalar, `t`.

        Returns:
            As of `allowed_candidates`, as many as are wanted and more.
        """
        return allowed_candidates(
            logits, self._looked_at, self.forbidden(position)
        )

    def constrained_candidates(self, logits, token_ids, position, forced):
        """Finds the candidates under all constraints.

        Args:
            logits: float32 `(R, V)`.
            token_ids: int32 `(R, t + 1)`, bos first.
            position: int32 scalar, `t`.
            forced: int32 `(R,)` of `forced_at`.

        Returns:
            As of `free_candidates`.
        """
        logits, forbidden = self.look_back(logits, token_ids, position)
        log_probs, ids = allowed_candidates(
            logits, self._wanted + tf.shape(forbidden)[1], forbidden
        )
        return force(forced, logits, log_probs, ids)


def repeated_ngrams(token_ids, size):
    """Finds the ids that would make an n-gram occur twice in a hypothesis.

    Id `v` is blocked after `y_1 .. y_t` if some earlier
    `y_(i-n+1) .. y_i = y_(t-n+2) .. y_t, v`. Paulus et al., 2017
    (https://arxiv.org/abs/1705.04304), section 2.5, with `n = 3`.

    Args:
        token_ids: int32 `(R, t)`, bos and what was generated so far; bos is
            in no n-gram.
        size: int32 scalar, `n`; 0 and less blocks nothing.

    Returns:
        int32 `(R, t)`: the blocked ids, -1 elsewhere.

    Example:

    >>> print(repeated_ngrams(tf.constant([[1, 7, 8, 9, 7, 8]]), 3).numpy())
    [[-1 -1 -1  9 -1 -1]]
    """
    length = tf.shape(token_ids)[1]
    # Id i is blocked if the n - 1 ids before it are the last n - 1. A step
    # back of 0 compares nothing, so that the axis is never empty; of n above
    # the length nothing can be found either.
    back = tf.range(tf.clip_by_value(size, 1, length))[None, :]
    here = tf.range(length)[:, None] - back  # (t, n)
    there = tf.minimum(length - back, length - 1)  # (1, n)
    same = tf.equal(
        tf.gather(token_ids, tf.maximum(here, 0), axis=1),
        tf.gather(token_ids, there, axis=1),
    )
    blocked = tf.reduce_all((here > 0) & (same | (back == 0)), axis=2)
    return tf.where(blocked & (size > 0), token_ids, -1)


def penalize_repetition(logits, token_ids, penalty):
    """Makes what was generated already less likely.

    A logit `x` of an id that occurs becomes `x / penalty` where it is above
    0 and `x * penalty` elsewhere. Keskar et al., 2019
    (https://arxiv.org/abs/1909.05858), section 4.1, which divides only; a
    division would make an id with a negative logit likelier.

    Args:
        logits: float32 `(R, V)`.
        token_ids: int32 `(R, t)`, bos, which is left alone, and what was
            generated so far.
        penalty: float32 scalar, above 0; below 1 it rewards repetition.

    Returns:
        float32 `(R, V)`.

    Example:

    >>> logits = tf.constant([[2.0, 2.0, -1.0, -1.0]])
    >>> print(penalize_repetition(logits, tf.constant([[0, 1, 2]]), 2).numpy())
    [[ 2.  1. -2. -1.]]
    """
    vocab_size = tf.shape(logits)[1]
    # Not `!=`, of which TensorFlow cannot tell the rank.
    not_bos = tf.not_equal(token_ids, token_ids[:, :1])
    seen = which_occur(token_ids, vocab_size, not_bos)
    penalized = tf.where(logits > 0, logits / penalty, logits * penalty)
    return tf.where(seen, penalized, logits)
