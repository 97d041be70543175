"""Attention (paper, section 3.2 and Figure 2)."""

from typing import NamedTuple

import keras
from keras import ops

from keras_transformer.layers.arguments import check_positive, check_rate
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.masks import combine_masks, implicit_mask
from keras_transformer.layers.registered import (
    registered_function,
    registered_names,
)

# A finite stand-in for minus infinity: softmax of a row of infinities is NaN,
# and this one fits float16, for models that are stored in half precision.
HIDDEN_SCORE = -3e4


def scaled_dot_product_attention(
    query,
    key,
    value,
    attention_mask=None,
    dropout=None,
    return_weights=False,
    attention_bias=None,
):
    """Reads values by how well their keys match each query.

    `softmax(Q K^T / sqrt(d_k)) V`, paper, section 3.2.1, equation 1. Same as
    the paper but for one case it leaves open: a query that may attend to
    nothing gets zeros (and zero gradients), never NaN.

    Args:
        query: float tensor `(B, H, T, d_k)`.
        key: float tensor `(B, H, S, d_k)`.
        value: float tensor `(B, H, S, d_v)`.
        attention_mask: bool tensor that broadcasts to `(B, T, S)`, True where
            a query may attend, or None for everywhere.
        dropout: a function applied to the weights, or None.
        return_weights: bool, whether to return the weights as well.
        attention_bias: float32 tensor that broadcasts to `(B, T, S)`, added
            to the scores, or None. `HIDDEN_SCORE` in it hides, in one step
            where a mask takes two, of a query that may attend to something.

    Returns:
        Tensor `(B, H, T, d_v)` in the dtype of `value`; with
        `return_weights` a pair of it and the weights `(B, H, T, S)` after
        dropout. Softmax runs in float32 whatever the dtype.

    Example:

    >>> query = np.array([[[[0.0]]]], "float32")
    >>> key = np.array([[[[1.0], [2.0], [3.0]]]], "float32")
    >>> value = np.array([[[[10.0], [20.0], [90.0]]]], "float32")
    >>> mask = np.array([[[True, True, False]]])
    >>> float(scaled_dot_product_attention(query, key, value, mask)[0, 0, 0, 0])
    15.0
    """
    scaled_query = query * query.shape[-1] ** -0.5
    scores = ops.matmul(scaled_query, ops.transpose(key, (0, 1, 3, 2)))
    scores = ops.cast(scores, "float32")  # (B, H, T, S)
    if attention_bias is not None:
        scores += ops.expand_dims(attention_bias, axis=1)
    if attention_mask is None:
        weights = ops.softmax(scores)
    else:
        visible = ops.expand_dims(attention_mask, axis=1)
        weights = ops.softmax(ops.where(visible, scores, HIDDEN_SCORE))
        # Where nothing is visible softmax is uniform; this makes it zero.
        weights = ops.where(visible, weights, 0.0)
    weights = ops.cast(weights, value.dtype)
    if dropout is not None:
        weights = dropout(weights)
    outputs = ops.matmul(weights, value)
    return (outputs, weights) if return_weights else outputs


class KeysValues(NamedTuple):
    """What attention reads from, split into heads.

    keys: float tensor `(B, H, S, d_k)`.
    values: float tensor `(B, H, S, d_v)`.
    """

    keys: object
    values: object


@keras.saving.register_keras_serializable("keras_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """Attends with several heads at once, each to what it has learned.

    `Concat(head_1, ..., head_H) W^O`, where
    `head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)`.

    Paper: section 3.2.2. Same as the paper: the formula, and `d_k` and `d_v`
    of one head, which default to `D / H`. Different: every projection has a
    bias unless `use_bias=False`; dropout on the weights is possible.

    Args:
        d_model: int, `D`, the width of the output.
        num_heads: int, `H`.
        d_k: int, width of the queries and keys of one head, or None.
        d_v: int, width of the values of one head, or None.
        dropout: float in [0, 1), rate on the attention weights.
        use_bias: bool, whether the four projections add a bias.
        rotate: None, or a registered function of queries or keys
            `(B, H, T, d_k)` and their positions, an int tensor that
            broadcasts to `(B, H, T)`, to a tensor like the first: tells
            positions by what it does to both (not in the paper).
        **kwargs: the arguments of every Keras layer.

    Call arguments:
        query: float tensor `(B, T, D_q)`.
        value: float tensor `(B, S, D_v)`.
        key: float tensor `(B, S, D_k)`, by default `value`.
        attention_mask: bool tensor that broadcasts to `(B, T, S)`, True where
            a query may attend. A Keras mask on `value` is added to it.
        return_weights: bool, whether to return the weights too.
        training: bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, D)`; with `return_weights` a pair of it and the
        weights `(B, H, T, S)`.

    Raises:
        ValueError: if a size is not positive, a rate not in [0, 1), or
            `d_model` is no multiple of `num_heads` and `d_k` or `d_v` is not
            given, or `rotate` is not registered with Keras.

    Example:

    >>> attention = MultiHeadAttention(d_model=8, num_heads=2, d_v=3)
    >>> outputs, weights = attention(
    ...     np.ones((1, 5, 8)), np.ones((1, 7, 6)), return_weights=True)
    >>> tuple(outputs.shape), tuple(weights.shape)
    ((1, 5, 8), (1, 2, 5, 7))
    """

    def __init__(
        self,
        d_model,
        num_heads,
        d_k=None,
        d_v=None,
        dropout=0.0,
        use_bias=True,
        rotate=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(d_model=d_model, num_heads=num_heads, d_k=d_k, d_v=d_v)
        check_rate(dropout=dropout)
        if d_model % num_heads and (d_k is None or d_v is None):
            raise ValueError(
                "d_model must be a multiple of num_heads unless both d_k and "
                f"d_v are given, got d_model={d_model}, num_heads={num_heads}, "
                f"d_k={d_k}, d_v={d_v}"
            )
        self.supports_masking = True
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_k = d_k or d_model // num_heads
        self.d_v = d_v or d_model // num_heads
        self.dropout = dropout
        self.use_bias = use_bias
        self.rotate = registered_function("rotate", rotate)
        self.query_projection = self._projection("query", num_heads * self.d_k)
        self.key_projection = self._projection("key", num_heads * self.d_k)
        self.value_projection = self._projection("value", num_heads * self.d_v)
        self.output_projection = self._projection("output", d_model)
        self.weights_dropout = Dropout(dropout, dtype=self.dtype_policy)

    def _projection(self, name, units):
        return keras.layers.Dense(
            units, use_bias=self.use_bias, name=name, dtype=self.dtype_policy
        )

    def build(self, query_shape, value_shape, key_shape=None):
        self.query_projection.build(query_shape)
        self.key_projection.build(key_shape or value_shape)
        self.value_projection.build(value_shape)
        self.output_projection.build(
            (*query_shape[:-1], self.num_heads * self.d_v)
        )

    def call(
        self,
        query,
        value,
        key=None,
        attention_mask=None,
        return_weights=False,
        training=None,
        value_mask=None,
    ):
        outputs, weights = self.attend(
            query,
            self.project(value, key),
            combine_masks(attention_mask, implicit_mask(value_mask)),
            training=training,
        )
        return (outputs, weights) if return_weights else outputs

    def project(self, value, key=None, step=None):
        """Computes the keys and values that queries will read.

        Decoding calls this once for each sentence (cross-attention) or once
        for each new position (self-attention), and keeps the result.

        Args:
            value: float tensor `(B, S, D_v)`; in a step `(R, D_v)`.
            key: float tensor like it, `(..., D_k)`, by default `value`.
            step: `Step`, or None for a whole sequence.

        Returns:
            `KeysValues`, the keys rotated.
        """
        key = value if key is None else key
        keys = self._split_heads(key, self.key_projection, self.d_k, step)
        values = self._split_heads(value, self.value_projection, self.d_v, step)
        return KeysValues(self._at_positions(keys, step), values)

    def attend(
        self,
        query,
        keys_values,
        attention_mask=None,
        attention_bias=None,
        step=None,
        training=None,
    ):
        """Reads projected keys and values.

        Args:
            query: float tensor `(B, T, D_q)`; in a step `(R, D_q)`.
            keys_values: `KeysValues`, or a cache.
            attention_mask: bool tensor that broadcasts to `(B, T, S)`, or
                None.
            attention_bias: as of `scaled_dot_product_attention`.
            step: as of `project`.
            training: bool, whether dropout is on.

        Returns:
            Outputs `(B, T, D)` and weights `(B, H, T, S)`; in a step `(R, D)`
            and `(B, H, K, S)`.
        """
        queries = self._split_heads(
            query, self.query_projection, self.d_k, step
        )
        heads, weights = scaled_dot_product_attention(
            self._at_positions(queries, step),
            keys_values.keys,
            keys_values.values,
            attention_mask,
            dropout=lambda w: self.weights_dropout(w, training=training),
            return_weights=True,
            attention_bias=attention_bias,
        )
        joined = self._join_heads(heads, query, step)
        return self.output_projection(joined), weights

    def _split_heads(self, inputs, projection, width, step):
        """Gives `(B, H, T, width)` of what is projected."""
        states = projection(inputs)
        if step is not None:
            return step.split_heads(states, self.num_heads, width)
        # The axes are those of the inputs: converters lose those of what is
        # projected. No -1 where all may be 0, from which nothing follows.
        axes = ops.shape(inputs)[:2]
        heads = ops.reshape(states, (*axes, self.num_heads, width))
        return ops.transpose(heads, (0, 2, 1, 3))

    def _join_heads(self, heads, query, step):
        """The way back: `(B, T, H * d_v)`, in a step `(R, H * d_v)`."""
        width = self.num_heads * self.d_v
        if step is not None:
            return step.join_heads(heads, width)
        heads = ops.transpose(heads, (0, 2, 1, 3))
        return ops.reshape(heads, (*ops.shape(query)[:2], width))

    def _at_positions(self, heads, step):
        """Rotates queries or keys `(B, H, T, d_k)`, where that is asked."""
        if self.rotate is None:
            return heads
        if step is None:
            return self.rotate(heads, ops.arange(ops.shape(heads)[2]))
        return self.rotate(heads, ops.convert_to_tensor(step.position, "int32"))

    def get_config(self):
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "num_heads": self.num_heads,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "dropout": self.dropout,
            "use_bias": self.use_bias,
            **registered_names(rotate=self.rotate),
        }
