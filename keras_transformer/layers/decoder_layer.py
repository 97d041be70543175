"""One layer of the decoder (paper, section 3.1 and Figure 1, right)."""

import keras
from keras import ops

from keras_transformer.layers.add_norm import AddNorm
from keras_transformer.layers.arguments import check_rate, check_width
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.masks import causal_mask, combine_masks
from keras_transformer.layers.stack import layer_config


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderLayer(keras.layers.Layer):
    """Lets each position read its prefix, then the source, then think.

    Masked self-attention, cross-attention over the memory and feed-forward
    network, each in Add & Norm. `call` takes all positions at once, `step`
    one position and a cache of those before; both run `forward`.

    Paper: section 3.1 and Figure 1 (right). Different: the options beyond the
    paper are those of `EncoderLayer`.

    Args:
        d_model: int, `D`.
        num_heads: int, `H`.
        d_ff: int, `F`.
        d_k: int, width of the queries and keys of one head, or None for
            `D / H`.
        d_v: int, width of the values of one head, or None for `D / H`.
        dropout: float in [0, 1), rate on the output of each sublayer.
        attention_dropout: float in [0, 1), rate on the attention weights.
        feed_forward_dropout: float in [0, 1), rate inside the feed-forward
            network.
        activation: a Keras activation or its name.
        norm_first: bool, pre-norm instead of post-norm.
        epsilon: float, of the layer norms.
        **kwargs: the arguments of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, T, D)`.
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
        self,
        d_model,
        num_heads,
        d_ff,
        d_k=None,
        d_v=None,
        dropout=0.0,
        attention_dropout=0.0,
        feed_forward_dropout=0.0,
        activation="relu",
        norm_first=False,
        epsilon=1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_rate(
            dropout=dropout,
            attention_dropout=attention_dropout,
            feed_forward_dropout=feed_forward_dropout,
        )
        self.supports_masking = True
        policy = self.dtype_policy
        self.self_attention = MultiHeadAttention(
            d_model, num_heads, d_k, d_v, attention_dropout, dtype=policy
        )
        self.cross_attention = MultiHeadAttention(
            d_model, num_heads, d_k, d_v, attention_dropout, dtype=policy
        )
        self.feed_forward = FeedForward(
            d_model, d_ff, feed_forward_dropout, activation, dtype=policy
        )
        self.self_attention_norm = AddNorm(
            dropout, norm_first, epsilon, dtype=policy
        )
        self.cross_attention_norm = AddNorm(
            dropout, norm_first, epsilon, dtype=policy
        )
        self.feed_forward_norm = AddNorm(
            dropout, norm_first, epsilon, dtype=policy
        )

    def build(self, inputs_shape, memory_shape):
        check_width(self.self_attention.d_model, inputs_shape)
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
        memory_mask=None,
    ):
        if memory_mask is not None:
            memory_mask = ops.expand_dims(memory_mask, axis=1)
        outputs, weights = self.forward(
            inputs,
            self_attend=lambda states: self.self_attention(
                states,
                states,
                attention_mask=combine_masks(
                    causal_mask(ops.shape(inputs)[1]), attention_mask
                ),
                training=training,
            ),
            memory=self.cross_attention.project(memory),
            memory_mask=combine_masks(memory_attention_mask, memory_mask),
            training=training,
        )
        return (outputs, weights) if return_weights else outputs

    def step(
        self,
        inputs,
        memory,
        memory_mask,
        cache,
        position,
        batch=None,
        lineage=None,
    ):
        """Decodes one position.

        Args:
            inputs: float tensor `(R, D)`. `R` is a multiple `B * K` of the
                number of sentences; row `b * K + k` is hypothesis `k` of
                sentence `b`.
            memory: `KeysValues` of `cross_attention.project`, for `B` rows.
            memory_mask: bool tensor `(B, 1, S)`, or None.
            cache: `GrowingCache` or `FixedCache` of `R` rows; with `lineage`
                a `GrowingCache` of `B` rows.
            position: int scalar tensor.
            batch: int or scalar tensor, `B`; None if `R = B`.
            lineage: None, or float tensor `(B, K, L)`, added to the scores:
                hides from each hypothesis what in the cache of its sentence
                is not of its own prefix, this position included.

        Returns:
            Outputs `(R, D)`, the cache with this position in it, and the
            cross-attention weights `(B, H, K, S)`.
        """
        if lineage is not None:
            batch = ops.shape(lineage)[0] if batch is None else batch
        shared = None if lineage is None else batch

        def self_attend(states):
            nonlocal cache
            new = self.self_attention.project(states, batch=shared)
            cache = cache.append(new, position)
            outputs, _ = self.self_attention.attend(
                states,
                cache,
                cache.mask(position),
                batch=shared,
                attention_bias=lineage,
            )
            return outputs

        outputs, weights = self.forward(
            inputs, self_attend, memory, memory_mask, batch=batch
        )
        return outputs, cache, weights

    def forward(
        self,
        inputs,
        self_attend,
        memory,
        memory_mask,
        training=False,
        batch=None,
    ):
        """Runs the three sublayers: the one path of training and decoding.

        Args:
            inputs: float tensor `(B, T, D)`, or `(R, D)`, one position of
                `R / B` hypotheses of each sentence.
            self_attend: the first sublayer, a function of such a tensor to
                the same; what it may look at is all that decoding changes.
            memory: `KeysValues` for `B` rows.
            memory_mask: bool tensor that broadcasts to `(B, T, S)`, or None.
            training: bool, whether dropout is on.
            batch: as of `step`.

        Returns:
            Outputs like the inputs, and the cross-attention weights.
        """
        weights = None

        def cross_attend(states):
            nonlocal weights
            # The hypotheses of a sentence are just more queries to the same
            # memory, so its keys and values are never copied for each.
            outputs, weights = self.cross_attention.attend(
                states, memory, memory_mask, training=training, batch=batch
            )
            return outputs

        def think(states):
            return self.feed_forward(states, training=training)

        states = self.self_attention_norm(
            inputs, sublayer=self_attend, training=training
        )
        states = self.cross_attention_norm(
            states, sublayer=cross_attend, training=training
        )
        states = self.feed_forward_norm(
            states, sublayer=think, training=training
        )
        return states, weights

    def get_config(self):
        return {**super().get_config(), **layer_config(self)}
