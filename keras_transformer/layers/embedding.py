"""Embeddings and the output projection (paper, section 3.4)."""

import keras
from keras import ops

from keras_transformer.layers.arguments import check_positive


@keras.saving.register_keras_serializable("keras_transformer")
class TokenEmbedding(keras.layers.Layer):
    """Turns token ids into vectors, and decoder states into logits.

    `embedding(token_ids)` gives `E[token_ids] * sqrt(D)`, and
    `embedding(states, project=True)` gives `states @ E^T (+ b)` with the same
    matrix `E`, not scaled.

    Paper: section 3.4. Same as the paper: one matrix serves both, and the
    factor `sqrt(D)` is on the look-up alone. Different: an optional bias on
    the logits; `E` starts as a normal distribution of deviation `D^-0.5`, so
    that both uses start at unit scale (the paper names no initialiser).

    Args:
        vocab_size: int, `V`.
        d_model: int, `D`.
        output_bias: bool, whether the projection adds a learned bias `(V,)`.
        **kwargs: the arguments of every Keras layer (`name`, `dtype`, ...).

    Call arguments:
        inputs: int tensor of any shape `(...)`; with `project` a float tensor
            `(..., D)`. Ids are not checked here: they must be in `[0, V)`.
        project: bool, whether to project instead of looking up.

    Returns:
        Float tensor `(..., D)`; with `project` logits `(..., V)`.

    Raises:
        ValueError: if a size is not a positive int.

    Example:

    >>> embedding = TokenEmbedding(vocab_size=7, d_model=4)
    >>> vectors = embedding(np.array([[3, 5]]))
    >>> logits = embedding(vectors, project=True)
    >>> tuple(vectors.shape), tuple(logits.shape)
    ((1, 2, 4), (1, 2, 7))
    """

    def __init__(self, vocab_size, d_model, output_bias=False, **kwargs):
        super().__init__(**kwargs)
        check_positive(vocab_size=vocab_size, d_model=d_model)
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.output_bias = output_bias
        self.bias = None

    def build(self, input_shape=None):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocab_size, self.d_model),
            initializer=keras.initializers.RandomNormal(
                stddev=self.d_model**-0.5
            ),
        )
        if self.output_bias:
            self.bias = self.add_weight(
                name="bias", shape=(self.vocab_size,), initializer="zeros"
            )

    def call(self, inputs, project=False):
        if not project:
            return ops.take(self.embeddings, inputs, axis=0) * (
                self.d_model**0.5
            )
        logits = ops.matmul(inputs, ops.transpose(self.embeddings))
        return logits if self.bias is None else logits + self.bias

    def get_config(self):
        return {
            **super().get_config(),
            "vocab_size": self.vocab_size,
            "d_model": self.d_model,
            "output_bias": self.output_bias,
        }
