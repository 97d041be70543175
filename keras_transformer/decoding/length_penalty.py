"""Length penalty of beam search (paper, section 6.1)."""

import tensorflow as tf


def gnmt_penalty(lengths, alpha):
    """Computes what a log-probability is divided by.

    `((5 + length) / 6) ^ alpha`, Wu et al., 2016
    (https://arxiv.org/abs/1609.08144), equation 14; the paper uses it with
    `alpha = 0.6`. Larger `alpha` prefers longer hypotheses; 0 is off.

    Args:
        lengths: int tensor, generated ids, eos included and bos not.
        alpha: float or float scalar.

    Returns:
        float32 tensor of the shape of `lengths`, above 0.

    Example:

    >>> float(gnmt_penalty(7, 1.0)), float(gnmt_penalty(7, 0.0))
    (2.0, 1.0)
    """
    base = (5.0 + tf.cast(lengths, tf.float32)) / 6.0
    return tf.pow(base, tf.cast(alpha, tf.float32))
