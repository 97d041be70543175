"""What a decoder layer remembers of the positions it has already seen.

Two forms behind one interface: `append` the keys and values of one new
position, then attend under `mask`. Both are named tuples of tensors, so that
they can be loop variables; the first axis is the hypothesis. A `GrowingCache`
may also be that of a sentence, if its hypotheses share it under a lineage.
"""

from typing import NamedTuple

from keras import ops


class GrowingCache(NamedTuple):
    """Keys and values of the positions so far: small early, ever longer.

    The default: work grows with the output alone. It needs a runtime whose
    loop variables may change shape (TensorFlow, ONNX).

    keys: float tensor `(R, H, t, d_k)`, `R` rows, `t` positions.
    values: float tensor `(R, H, t, d_v)`.
    """

    keys: object
    values: object

    @classmethod
    def empty(cls, rows, num_heads, d_k, d_v, dtype):
        """Makes the cache of a decoder that has seen nothing."""
        return cls(
            ops.zeros((rows, num_heads, 0, d_k), dtype),
            ops.zeros((rows, num_heads, 0, d_v), dtype),
        )

    def append(self, new, position):
        """Adds `KeysValues`: `(R, H, 1, ...)`, or `K` of one position."""
        del position
        return GrowingCache(
            ops.concatenate([self.keys, new.keys], axis=2),
            ops.concatenate([self.values, new.values], axis=2),
        )

    def mask(self, position):
        """Hides nothing: all that is kept has been written."""
        del position
        return None


class FixedCache(NamedTuple):
    """Keys and values in a buffer of fixed size, for XLA and LiteRT.

    keys: float tensor `(R, H, L, d_k)`, `L` the largest number of positions.
    values: float tensor `(R, H, L, d_v)`.
    """

    keys: object
    values: object

    @classmethod
    def empty(cls, rows, num_heads, d_k, d_v, dtype, length):
        """Makes the buffer of a decoder that has seen nothing."""
        return cls(
            ops.zeros((rows, num_heads, length, d_k), dtype),
            ops.zeros((rows, num_heads, length, d_v), dtype),
        )

    def append(self, new, position):
        """Writes `KeysValues` of one position into its slot."""
        slots = ops.arange(self.keys.shape[2])[None, None, :, None]
        here = ops.equal(slots, position)
        return FixedCache(
            ops.where(here, new.keys, self.keys),
            ops.where(here, new.values, self.values),
        )

    def mask(self, position):
        """Hides the slots after `position`: bool `(1, 1, L)`."""
        slots = ops.arange(self.keys.shape[2])[None, None, :]
        return ops.less_equal(slots, position)
