"""One layer of the decoder (paper, section 3.1 and Figure 1, right)."""

import keras
from keras import ops

from keras_transformer.layers.arguments import check_width
from keras_transformer.layers.layer_options import LayerOptions
from keras_transformer.layers.masks import (
    causal_mask,
    combine_masks,
    implicit_mask,
)


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderLayer(keras.layers.Layer):
    """Lets each position read its prefix, then the source, then think.

    Masked self-attention, cross-attention over the memory and feed-forward
    network, each in Add & Norm. `call` takes all positions at once, `step`
    one position and a cache of those before; both run `forward`.

    Paper: section 3.1 and Figure 1 (right). Different: what `LayerOptions`
    names, all off by default.

    Args:
        d_model: int, `D`.
        num_heads: int, `H`.
        d_ff: int, `F`.
        **options: the others of `LayerOptions`, and the `name`, `dtype` and
            `trainable` of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, T, D)`. A Keras mask on it hides padding.
        memory: float tensor `(B, S, D)`. A Keras mask on it hides padding.
        attention_mask: bool tensor that broadcasts to `(B, T, T)`, added to
            the causal mask, or None.
        memory_attention_mask: bool tensor that broadcasts to `(B, T, S)`, or
            None.
        training: bool, whether dropout is on.
        return_weights: bool, whether to return the cross-attention too.

    Returns:
        Float tensor `(B, T, D)`; with `return_weights` a pair of it and the
        cross-attention weights `(B, H, T, S)`. Position `t` depends on
        positions `<= t` of `inputs` only, so padding at the end of a target
        needs no mask.

    Raises:
        ValueError: as `MultiHeadAttention`, `FeedForward` and `AddNorm`.
    """

    def __init__(
        self, d_model, num_heads, d_ff, *, name=None, dtype=None,
        trainable=True, **options,
    ):  # fmt: skip
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.supports_masking = True
        options = LayerOptions(d_model, num_heads, d_ff, **options)
        policy = self.dtype_policy
        self.options = options
        self.self_attention = options.attention(policy, options.rotate)
        self.cross_attention = options.attention(policy)
        self.feed_forward = options.feed_forward(policy)
        self.self_attention_norm = options.add_norm(policy)
        self.cross_attention_norm = options.add_norm(policy)
        self.feed_forward_norm = options.add_norm(policy)

    def build(self, inputs_shape, memory_shape):
        check_width(self.options.d_model, inputs_shape)
        self.self_attention.build(inputs_shape, inputs_shape)
        self.self_attention_norm.build(inputs_shape)
        self.cross_attention.build(inputs_shape, memory_shape)
        self.cross_attention_norm.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_norm.build(inputs_shape)

    def call(
        self,
        inputs,
        memory,
        attention_mask=None,
        memory_attention_mask=None,
        training=None,
        return_weights=False,
        inputs_mask=None,
        memory_mask=None,
    ):
        outputs, _, weights = self.forward(
            inputs,
            self.cross_attention.project(memory),
            combine_masks(memory_attention_mask, implicit_mask(memory_mask)),
            attention_mask=combine_masks(
                causal_mask(ops.shape(inputs)[1]),
                attention_mask,
                implicit_mask(inputs_mask),
            ),
            training=training,
        )
        return (outputs, weights) if return_weights else outputs

    def step(self, inputs, memory, memory_attention_mask, cache, step):
        """Decodes one position.

        Args:
            inputs: float tensor `(R, D)`.
            memory: `KeysValues` of `cross_attention.project`, for `B`
                sentences.
            memory_attention_mask: bool tensor `(B, 1, S)`, or None.
            cache: `GrowingCache`, for `B` sentences.
            step: `Step`, which tells whose the `R` rows are.

        Returns:
            Outputs `(R, D)`, the cache with this position in it, and the
            cross-attention weights `(B, H, K, S)`.
        """
        # As Keras does around `call`, so that a graph tells layers apart.
        with keras.name_scope(self.name):
            return self.forward(
                inputs, memory, memory_attention_mask, cache=cache, step=step
            )

    def forward(
        self,
        inputs,
        memory,
        memory_attention_mask,
        attention_mask=None,
        cache=None,
        step=None,
        training=False,
    ):
        """Runs the three sublayers: the one path of training and decoding.

        Args:
            inputs: float tensor `(B, T, D)`; in a step `(R, D)`.
            memory: `KeysValues`, for `B` sentences.
            memory_attention_mask: bool tensor that broadcasts to
                `(B, T, S)`, or None.
            attention_mask: bool tensor that broadcasts to `(B, T, T)`, what
                of a whole sequence each position may see; None in a step.
            cache: in a step, what the inputs see beside themselves.
            step: `Step`, or None for a whole sequence.
            training: bool, whether dropout is on.

        Returns:
            Outputs like the inputs, the keys and values that self-attention
            saw, and the cross-attention weights.
        """
        states = self.self_attention_norm.before(inputs)
        seen = self.self_attention.project(states, step=step)
        if cache is not None:
            seen = cache.append(seen)
        lineage = None if step is None else step.lineage
        outputs, _ = self.self_attention.attend(
            states, seen, attention_mask, lineage, step, training
        )
        inputs = self.self_attention_norm.after(inputs, outputs, training)

        states = self.cross_attention_norm.before(inputs)
        outputs, weights = self.cross_attention.attend(
            states, memory, memory_attention_mask, step=step, training=training
        )
        inputs = self.cross_attention_norm.after(inputs, outputs, training)

        states = self.feed_forward_norm.before(inputs)
        outputs = self.feed_forward(states, training=training)
        outputs = self.feed_forward_norm.after(inputs, outputs, training)
        return outputs, seen, weights

    def get_config(self):
        return {**super().get_config(), **self.options.config()}
