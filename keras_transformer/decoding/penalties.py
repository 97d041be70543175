"""Penalties of beam search for length and coverage (Wu et al., 2016)."""

import tensorflow as tf

GNMT, POWER = 0, 1

# Its exponential, and one over it, are normal numbers with room for a score.
_LARGEST_LOG = 69.0
# Less counts as this, so that the logarithm stays finite.
_LEAST_COVERAGE = 1e-10


class LengthPenalty:
    """What a log-probability is divided by.

    Form `GNMT`: `((5 + length) / 6) ^ alpha`, Wu et al., 2016
    (https://arxiv.org/abs/1609.08144), equation 14; the paper uses it with
    `alpha = 0.6`. Form `POWER`: `length ^ alpha`, as CTranslate2, fairseq,
    Marian and Hugging Face have it, so that their settings carry over.
    Larger `alpha` prefers longer hypotheses; 0 is off.

    Args:
        alpha: float or float32 scalar.
        form: int or int32 scalar, `GNMT` (0) or `POWER` (1).

    Example:

    >>> print(LengthPenalty(1.0, GNMT)(7).numpy().round(3))
    2.0
    >>> print(LengthPenalty(2.0, POWER)(7).numpy().round(3))
    49.0
    """

    def __init__(self, alpha, form=GNMT):
        self.alpha = tf.cast(alpha, tf.float32)
        self.extra = tf.where(tf.equal(form, POWER), 0.0, 5.0)
        self.least_length = 1.0 - self.extra
        self.divisor = 1.0 + self.extra

    def __call__(self, lengths):
        """Computes the penalty.

        Args:
            lengths: int tensor, generated ids, eos included and bos not.

        Returns:
            float32 tensor of the shape of `lengths`, above 0.
        """
        # A length of 0, of what generates nothing, must not divide by 0.
        lengths = tf.maximum(tf.cast(lengths, tf.float32), self.least_length)
        base = (lengths + self.extra) / self.divisor
        # No more than float32 holds: a score over infinity would be 0, which
        # none can beat, and over 0 it would be none.
        power = self.alpha * tf.math.log(base)
        return tf.exp(tf.clip_by_value(power, -_LARGEST_LOG, _LARGEST_LOG))


def coverage_penalty(coverage, beta):
    """Computes what is added to the score of a finished hypothesis.

    `beta * sum_i log(min(sum_j p_ij, 1))`, where `p_ij` is the attention of
    the `j`-th target token to the `i`-th source token: 0 or less, and lower
    the more of the source was left out. Wu et al., 2016, equation 14.
    Different: a source position that got no attention at all, such as
    padding (or what underflowed), does not count.

    Args:
        coverage: float32 `(..., S)`, the sum of attention over the target.
        beta: float or float32 scalar; 0 is off.

    Returns:
        float32 `(...)`.

    Example:

    >>> coverage = tf.constant([[0.5, 0.25, 3.0, 0.0], [1.0, 1.0, 1.0, 0.0]])
    >>> print(coverage_penalty(coverage, 1.0).numpy().round(3))
    [-2.079  0.   ]
    """
    counts = coverage > 0
    covered = tf.clip_by_value(coverage, _LEAST_COVERAGE, 1.0)
    logs = tf.where(counts, tf.math.log(covered), 0.0)
    return tf.cast(beta, tf.float32) * tf.reduce_sum(logs, axis=-1)
