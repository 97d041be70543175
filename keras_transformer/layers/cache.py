"""What a decoder layer remembers of the positions it has already seen."""

from typing import NamedTuple

from keras import ops


class GrowingCache(NamedTuple):
    """Keys and values of the positions so far: small early, ever longer.

    Work grows with the output alone, at the price of loop variables that
    change their shape, as TensorFlow, ONNX and LiteRT allow and XLA does not.
    A named tuple of tensors, so that it can be a loop variable.

    keys: float tensor `(B, H, t, d_k)`; `t` is the number of positions, times
        `K` where `K` hypotheses of a sentence share its cache.
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
