"""One position of decoding, and what is done for its speed alone.

A step computes what a whole sequence would at one position; tests compare
them. It could do so on tensors `(B, 1, D)` under masks. What it does instead
is all in this file:

- Rows have rank 2, `(R, D)`: Keras sends the product of a matrix with rank 3
  through `tensordot`, which reshapes before and after it.
- The `K` hypotheses of a sentence share one cache, to which each step adds
  `K` positions. When a search reorders hypotheses, their lineage is reordered,
  a number for each position, and not their keys and values. That halved the
  operators of a step of beam search.
- They are just more queries to the memory, whose keys and values are never
  copied for each.
- Heads of one hypothesis a sentence are split by a reshape: where there is one
  position, there is nothing to transpose.
- The lineage is added to the scores: one operator, where a mask takes two.
"""

from typing import NamedTuple

from keras import ops


class Step(NamedTuple):
    """Which position a step is at, and whose.

    Of one hypothesis a sentence `position` says all: `R = B`. Of `K` the row
    `b * K + k` is hypothesis `k` of sentence `b`, `R = B * K`, and `batch`
    and `lineage` are given.

    position: int scalar tensor, 0 for bos; the same for all rows.
    batch: int or scalar tensor, `B`.
    lineage: float32 tensor `(B, K, (position + 1) * K)`, added to the scores
        of self-attention: 0 where a position in the cache of the sentence is
        of the hypothesis' own prefix, this position included, elsewhere
        `HIDDEN_SCORE`.
    """

    position: object
    batch: object = None
    lineage: object = None

    def split_heads(self, states, num_heads, width):
        """Gives `(B, H, K, width)` of `(R, H * width)`."""
        if self.lineage is None:
            return ops.reshape(states, (-1, num_heads, 1, width))
        heads = ops.reshape(states, (self.batch, -1, num_heads, width))
        return ops.transpose(heads, (0, 2, 1, 3))

    def join_heads(self, heads, width):
        """Gives `(R, width)` of `(B, H, K, width / H)`."""
        if self.lineage is not None:
            heads = ops.transpose(heads, (0, 2, 1, 3))
        return ops.reshape(heads, (-1, width))


class GrowingCache(NamedTuple):
    """Keys and values of the positions so far: small early, ever longer.

    Work grows with the output alone. The price is loop variables that change
    their shape, as TensorFlow, ONNX and LiteRT allow and XLA does not.

    keys: float tensor `(B, H, t, d_k)`; `t` is the number of positions, times
        `K` where the hypotheses of a sentence share its cache.
    values: float tensor `(B, H, t, d_v)`.
    """

    keys: object
    values: object

    @classmethod
    def empty(cls, batch, num_heads, d_k, d_v, dtype):
        """Makes the cache of a decoder layer that has seen nothing."""
        return cls(
            ops.zeros((batch, num_heads, 0, d_k), dtype),
            ops.zeros((batch, num_heads, 0, d_v), dtype),
        )

    def append(self, new):
        """Adds `KeysValues` of one position, `(B, H, K, ...)`."""
        return GrowingCache(
            ops.concatenate([self.keys, new.keys], axis=2),
            ops.concatenate([self.values, new.values], axis=2),
        )
