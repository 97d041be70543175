"""What a search needs to know of a model: one function and its state.

A search sees a model only as `step(token_ids, position, state)`, which
returns `(logits, state)`, or `(logits, state, attention)`:

- `token_ids`: int32 `(R,)`, the last id of each hypothesis, bos at first;
- `position`: int32 scalar, the position of these ids, 0 for bos;
- `state`: a `SearchState`; `step` returns one with the same `sentence`, and
  with `hypothesis` and `shared` of the same structure;
- `logits`: float `(R, V)` for the next id. They need not be normalised; minus
  infinity means impossible;
- `attention`: float `(B, H, K, S)`, how much each hypothesis attended to each
  position of the source in this step, by head; 0 on padding. Only a coverage
  penalty reads it.

`R = B * K` rows are `K` hypotheses for each of `B` sentences; row `b * K + k`
is hypothesis `k` of sentence `b`. Greedy search and sampling have `K = 1`.
`B` falls as sentences are done and leave, so `step` takes it from its inputs.
"""

from typing import NamedTuple

import tensorflow as tf


class SearchState(NamedTuple):
    """What a model keeps between steps, sorted by what it belongs to.

    sentence: any nest of tensors `(B, ...)`, the same for all hypotheses of a
        sentence, such as keys and values of the memory. Never copied for
        each hypothesis, and never changed by a step.
    hypothesis: any nest of tensors `(R, ...)` that follow their hypothesis
        when the search reorders them, such as a cache. When a search starts
        they have `B` rows. An axis that is empty then may grow.
    shared: any nest of tensors `(B, ...)` that steps change, such as a cache
        that all hypotheses of a sentence write to. Never reordered; an axis
        that is empty at first may grow.
    """

    sentence: object = ()
    hypothesis: object = ()
    shared: object = ()


class Hypotheses(NamedTuple):
    """What a search returns; beam search has an axis `N` after `B`.

    token_ids: int32 `(B, T)`, generated ids, eos included and bos not, filled
        up with pad; `T` is the largest of `lengths`.
    lengths: int32 `(B,)`, how many ids were generated, eos included.
    scores: float32 `(B,)`, log-probability in nats (greedy, sampling), or
        what beam search ranks by.
    finished: bool `(B,)`, whether the hypothesis ends in eos; if not it was
        cut at its largest length.
    """

    token_ids: object
    lengths: object
    scores: object
    finished: object


def take_step(step, token_ids, position, state):
    """Calls a step function, whichever of the two forms it has.

    Args:
        step: function as above.
        token_ids: int32 `(R,)`.
        position: int32 scalar.
        state: `SearchState`.

    Returns:
        Logits, float32 `(R, V)`; `SearchState`; the attention, or None.
    """
    logits, state, *attention = step(token_ids, position, state)
    return (
        tf.cast(logits, tf.float32),
        state,
        attention[0] if attention else None,
    )


def count_ids(token_ids, pad_id, eos_id):
    """Finds how long hypotheses are, and whether they end.

    Args:
        token_ids: int32 `(..., t + 1)`, bos first, filled up with pad.
        pad_id: int.
        eos_id: int.

    Returns:
        int32 `(...)`, the number of ids without bos, and bool `(...)`,
        whether eos is among them.
    """
    axis = token_ids.shape.rank - 1
    # Not cut off: OpenVINO mistakes what has no columns.
    generated = tf.range(tf.shape(token_ids)[axis]) > 0
    real = generated & tf.not_equal(token_ids, pad_id)
    lengths = tf.reduce_sum(tf.cast(real, tf.int32), axis=axis)
    ends = tf.reduce_any(generated & tf.equal(token_ids, eos_id), axis=axis)
    return lengths, ends


def select_rows(nest, rows):
    """Takes rows of each tensor of a nest.

    Args:
        nest: nest of tensors `(R, ...)`.
        rows: int32 `(R2,)`, the rows to take, in order.

    Returns:
        The same nest with tensors `(R2, ...)`.
    """
    return tf.nest.map_structure(
        lambda tensor: tf.gather(tensor, rows, axis=0), nest
    )
