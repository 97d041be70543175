"""One position of decoding, and what is done for its speed alone.

A step computes what a whole sequence would at one position; a test compares
them. It could do so on tensors `(B, 1, D)` under a mask. It is laid out
otherwise, which is all in this file and in `GrowingCache`:

- Rows of rank 2, `(R, D)` and not `(R, 1, D)`: Keras sends the product of a
  matrix with rank 3 through `tensordot`, which reshapes before and after it.
- The `K` hypotheses of a sentence share one cache, to which each step adds
  `K` positions. When a search reorders hypotheses, their lineage, a number a
  position, is reordered, and not their keys and values. That halved the
  operators of a step of beam search.
- They are just more queries to the memory, whose keys and values are never
  copied for each.
- With one hypothesis a sentence heads are split by a reshape: where there is
  one position, there is nothing to transpose.
- The lineage is a bias, added to the scores: one operator, where a mask takes
  two.
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
