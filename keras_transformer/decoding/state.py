"""What a search needs to know of a model: one function and its state.

A search sees a model only as `step(token_ids, position, state)`, which
returns `(logits, state)`:

- `token_ids`: int32 `(R,)`, the last id of each hypothesis, bos at first;
- `position`: int32 scalar, the position of these ids, 0 for bos;
- `state`: a `SearchState`; `step` returns one of the same structure;
- `logits`: float `(R, V)` for the next id. They need not be normalised; minus
  infinity means impossible.

`R = B * K` rows are `K` hypotheses for each of `B` sentences; row `b * K + k`
is hypothesis `k` of sentence `b`. Greedy search has `K = 1`.
"""

from typing import NamedTuple

import tensorflow as tf


class SearchState(NamedTuple):
    """What a model keeps between steps, sorted by what it belongs to.

    sentence: any nest of tensors `(B, ...)`, the same for all hypotheses of a
        sentence, such as keys and values of the memory. Never copied.
    hypothesis: any nest of tensors `(R, ...)` that follow their hypothesis
        when the search reorders them, such as a cache. When a search starts
        they have `B` rows. An axis that is empty then may grow.
    """

    sentence: object = ()
    hypothesis: object = ()


class Hypotheses(NamedTuple):
    """What a search returns; beam search has an axis `N` after `B`.

    token_ids: int32 `(B, T)`, generated ids, eos included and bos not, filled
        up with pad; `T` is the largest of `lengths`.
    lengths: int32 `(B,)`, how many ids were generated, eos included.
    scores: float32 `(B,)`, log-probability in nats (greedy), or
        log-probability over length penalty (beam).
    finished: bool `(B,)`, whether the hypothesis ends in eos; if not it was
        cut at its largest length.
    """

    token_ids: object
    lengths: object
    scores: object
    finished: object


def select_rows(hypothesis, rows):
    """Reorders a nest of tensors by their first axis.

    Args:
        hypothesis: nest of tensors `(R, ...)`.
        rows: int32 `(R2,)`, the rows to take.

    Returns:
        The same nest with tensors `(R2, ...)`.
    """
    return tf.nest.map_structure(
        lambda tensor: tf.gather(tensor, rows, axis=0), hypothesis
    )


def loop_shapes(loop_variables):
    """Tells `tf.while_loop` which axes may change: the first and empty ones.

    Args:
        loop_variables: nest of tensors.

    Returns:
        The same nest of `tf.TensorShape`.
    """

    def loop_shape(tensor):
        if tensor.shape.rank == 0:
            return tensor.shape
        return tf.TensorShape(
            [None, *(size or None for size in tensor.shape[1:])]
        )

    return tf.nest.map_structure(loop_shape, loop_variables)
