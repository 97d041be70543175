"""The decoder: a stack of layers (paper, section 3.1)."""

import keras

from keras_transformer.layers.arguments import check_positive
from keras_transformer.layers.decoder_layer import DecoderLayer
from keras_transformer.layers.step import GrowingCache


@keras.saving.register_keras_serializable("keras_transformer")
class Decoder(keras.layers.Layer):
    """A stack of decoder layers: from a prefix and the memory to states.

    Paper: section 3.1. Different: with `norm_first` the stack ends in a norm,
    since the residual stream of pre-norm layers is never normalised.

    Args:
        num_layers: int, `N`.
        **options: those of `LayerOptions`, and the `name`, `dtype` and
            `trainable` of every Keras layer.

    Call arguments:
        inputs: float tensor `(B, T, D)`. A Keras mask on it hides padding.
        memory: float tensor `(B, S, D)`. A Keras mask on it hides padding.
        attention_mask: bool tensor that broadcasts to `(B, T, T)`, added to
            the causal mask, or None.
        memory_attention_mask: bool tensor that broadcasts to `(B, T, S)`,
            usually `padding_mask(source_ids)`, or None.
        training: bool, whether dropout is on.
        return_weights: bool, whether to return the cross-attention of the
            last layer too.

    Returns:
        Float tensor `(B, T, D)`; with `return_weights` a pair of it and the
        cross-attention weights `(B, H, T, S)`.

    Raises:
        ValueError: if `num_layers` is not a positive int, and as
            `DecoderLayer`.
    """

    def __init__(
        self, num_layers, *, name=None, dtype=None, trainable=True, **options
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        check_positive(num_layers=num_layers)
        self.supports_masking = True
        self.layers = [
            DecoderLayer(name=f"layer_{i}", dtype=self.dtype_policy, **options)
            for i in range(num_layers)
        ]
        self.final_norm = self.layers[0].feed_forward_norm.final_norm()

    def build(self, inputs_shape, memory_shape):
        for layer in self.layers:
            layer.build(inputs_shape, memory_shape)
        if self.final_norm is not None:
            self.final_norm.build(inputs_shape)

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
        states, weights = inputs, None
        for layer in self.layers:
            states, weights = layer(
                states,
                memory,
                attention_mask=attention_mask,
                memory_attention_mask=memory_attention_mask,
                training=training,
                return_weights=True,
                memory_mask=memory_mask,
            )
        states = self.finish(states)
        return (states, weights) if return_weights else states

    def project_memory(self, memory):
        """Computes the keys and values that every step will read.

        Args:
            memory: float tensor `(B, S, D)`.

        Returns:
            A list with the `KeysValues` of each layer.
        """
        return [layer.cross_attention.project(memory) for layer in self.layers]

    def empty_caches(self, batch):
        """Makes a `GrowingCache` for each layer, of `batch` sentences."""
        attentions = [layer.self_attention for layer in self.layers]
        return [
            GrowingCache.empty(
                batch, each.num_heads, each.d_k, each.d_v, each.compute_dtype
            )
            for each in attentions
        ]

    def step(self, inputs, memory, memory_attention_mask, caches, step):
        """Decodes one position through all layers.

        Args:
            inputs: float tensor `(R, D)`, as in `DecoderLayer.step`.
            memory: the list of `project_memory`.
            memory_attention_mask: bool tensor `(B, 1, S)`, or None.
            caches: the list of `empty_caches` or of the last step.
            step: `Step`.

        Returns:
            Outputs `(R, D)`, the new list of caches, and the
            cross-attention weights `(B, H, K, S)` of the last layer.
        """
        states, new_caches, weights = inputs, [], None
        for layer, keys_values, cache in zip(
            self.layers, memory, caches, strict=True
        ):
            states, cache, weights = layer.step(
                states, keys_values, memory_attention_mask, cache, step
            )
            new_caches.append(cache)
        return self.finish(states), new_caches, weights

    def finish(self, states):
        """Applies the final norm of a pre-norm stack, if there is one."""
        return states if self.final_norm is None else self.final_norm(states)

    def compute_output_spec(
        self, inputs, memory, *args, return_weights=False, **kwargs
    ):
        # Written down, so that making a model need not trace the layers.
        states = keras.KerasTensor(inputs.shape, self.compute_dtype)
        if not return_weights:
            return states
        heads = self.layers[0].cross_attention.num_heads
        batch, length = inputs.shape[:2]
        shape = (batch, heads, length, memory.shape[1])
        return states, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            **self.layers[0].options.config(),
            "num_layers": len(self.layers),
        }
