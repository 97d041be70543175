"""What may come next: the options that greedy, beam and sampling share."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.logits import (
    allowed_candidates,
    which_occur,
)
from keras_transformer.decoding.options import check_given
from keras_transformer.decoding.prefix import force


class Constraints:
    """Options that change which ids may come next, and how likely they are.

    Each may be a number or a scalar tensor, so that one graph serves all
    values; if all are numbers and off, their work is left out.

    Args:
        pad_id: int, never generated.
        eos_id: int.
        forbidden_ids: sequence of ints, or int32 `(M,)`: never generated
            either.
        min_length: int32, eos is not allowed earlier.
        no_repeat_ngram_size: int32, see `repeated_ngrams`; 0 is off.
        repetition_penalty: float32, see `penalize_repetition`; 1 is off.

    Attributes:
        num_forbidden: int32 scalar, the width of `forbidden`.
    """

    def __init__(
        self,
        pad_id,
        eos_id,
        forbidden_ids=(),
        min_length=0,
        no_repeat_ngram_size=0,
        repetition_penalty=1.0,
    ):
        self.min_length = min_length
        self.no_repeat_ngram_size = no_repeat_ngram_size
        self.repetition_penalty = repetition_penalty
        # What is the same in all steps is made here, outside of the loop.
        ids = tf.cast(forbidden_ids, tf.int32)
        self._early = tf.concat([[pad_id], ids, [eos_id]], axis=0)[None, :]
        self._late = tf.concat([[pad_id], ids, [-1]], axis=0)[None, :]
        self.num_forbidden = tf.size(self._late)
        self._look_back = (no_repeat_ngram_size > 0) | (
            repetition_penalty != 1.0
        )

    @classmethod
    def checked(cls, pad_id, eos_id, forbidden_ids, **numbers):
        """Makes them, and refuses Python numbers out of range."""
        check_given(**numbers)
        if pad_id == eos_id:
            raise ValueError(
                "pad_id must be another id than eos_id, for it is never "
                f"generated, got pad_id={pad_id}, eos_id={eos_id}"
            )
        return cls(pad_id, eos_id, forbidden_ids, **numbers)

    def are_active(self, position, prefix_length):
        """Whether more than `forbidden` matters at a position.

        Args:
            position: int32 scalar.
            prefix_length: int or int32 scalar, how many ids may be forced.

        Returns:
            bool scalar, or a Python bool where it is known beforehand.
        """
        if not tf.is_tensor(prefix_length) and prefix_length == 0:
            return self._look_back
        return self._look_back | (position < prefix_length)

    def forbidden(self, position):
        """Lists what no hypothesis may generate at a position.

        Args:
            position: int32 scalar, number of ids generated so far.

        Returns:
            int32 `(1, M + 2)`, the last one eos, or -1 where it is allowed.
        """
        is_early = position + 1 < self.min_length
        return tf.where(is_early, self._early, self._late)

    def look_back(self, logits, token_ids, position):
        """Applies what depends on the ids that were generated before.

        Args:
            logits: float32 `(R, V)`.
            token_ids: int32 `(R, t + 1)`, bos first.
            position: int32 scalar, `t`.

        Returns:
            logits float32 `(R, V)`, and the forbidden ids of each row, int32
            `(R, M + t + 3)`.
        """
        always = self.forbidden(position) + tf.zeros_like(token_ids[:, :1])
        repeated = repeated_ngrams(token_ids, self.no_repeat_ngram_size)
        return (
            penalize_repetition(logits, token_ids, self.repetition_penalty),
            tf.concat([always, repeated], axis=1),
        )

    def candidates(self, logits, count, token_ids, position, forced):
        """As `allowed_candidates`, with all options and the forced start.

        Args:
            logits: float32 `(R, V)`.
            count: int or int32 scalar, how many candidates are wanted.
            token_ids: int32 `(R, t + 1)`, bos first.
            position: int32 scalar, `t`.
            forced: int32 `(R,)` of `forced_at`.

        Returns:
            log-probabilities float32 `(R, C)` and ids int32 `(R, C)`.
        """
        logits, forbidden = self.look_back(logits, token_ids, position)
        log_probs, ids = allowed_candidates(
            logits, count + tf.shape(forbidden)[1], forbidden
        )
        return force(forced, logits, log_probs, ids)


def when(condition, true_fn, false_fn):
    """`tf.cond` that does not build what is known not to happen."""
    if isinstance(condition, (bool, np.bool_)):
        return true_fn() if condition else false_fn()
    return tf.cond(condition, true_fn, false_fn)


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
