"""Masks: which position may look at which (paper, section 3.2.3).

Everywhere in this package a mask is boolean and True means "may attend"; what
is added to scores is called a bias.
"""

from keras import ops


def padding_mask(token_ids, pad_id=0):
    """Hides padding, so that a sentence does not depend on its batch.

    Args:
        token_ids: int tensor `(B, S)`.
        pad_id: int, the id that fills rows up.

    Returns:
        Bool tensor `(B, 1, S)`, True on every id but `pad_id`; the axis of
        length 1 stands for the queries.

    Example:

    >>> print(ops.convert_to_numpy(padding_mask(np.array([[5, 2, 0]]))))
    [[[ True  True False]]]
    """
    return ops.expand_dims(ops.not_equal(token_ids, pad_id), axis=1)


def implicit_mask(keras_mask):
    """Gives the mask `(B, S)` that Keras passes on, or None, as `(B, 1, S)`."""
    return None if keras_mask is None else ops.expand_dims(keras_mask, axis=1)


def causal_mask(length):
    """Hides the future, so that a position predicts from its prefix alone.

    Args:
        length: int or int scalar tensor, `T`.

    Returns:
        Bool tensor `(1, T, T)`, True on the diagonal and below it.

    Example:

    >>> print(ops.convert_to_numpy(causal_mask(3))[0].astype(int))
    [[1 0 0]
     [1 1 0]
     [1 1 1]]
    """
    positions = ops.arange(length)
    return ops.expand_dims(positions[:, None] >= positions[None, :], axis=0)


def combine_masks(*masks):
    """Allows what every given mask allows; None allows everything.

    Args:
        *masks: bool tensors that broadcast to `(B, T, S)`, or None.

    Returns:
        Their conjunction, or None if all are None.
    """
    combined = None
    for mask in masks:
        if mask is None:
            continue
        if combined is None:
            combined = mask
        else:
            combined = ops.logical_and(combined, mask)
    return combined
