"""The Transformer (paper, section 3 and Figure 1).

Shape letters, here and everywhere in the package: `B` batch, `S` source
length, `T` target length, `D` d_model, `F` d_ff, `H` heads, `d_k` and `d_v`
width of one head, `V` vocabulary, `K` beams, `R` rows of a batch of
hypotheses (`B * K`).
"""

import keras
from keras import ops

from keras_transformer.layers import (
    Decoder,
    Dropout,
    Encoder,
    LayerOptions,
    PositionalEncoding,
    TokenEmbedding,
    padding_mask,
)
from keras_transformer.layers.arguments import check_positive
from keras_transformer.special_ids import check_special_ids

# Sizes, to be passed as keyword arguments: `Transformer(8000, **TINY)`.
# BASE and BIG are the two rows of the paper's table 3; TINY suits corpora of
# some ten thousand sentences.
TINY = dict(num_layers=4, d_model=128, num_heads=4, d_ff=256, dropout=0.1)
BASE = dict(num_layers=6, d_model=512, num_heads=8, d_ff=2048, dropout=0.1)
BIG = dict(num_layers=6, d_model=1024, num_heads=16, d_ff=4096, dropout=0.3)

TYING_MODES = ("all", "target", "none")


@keras.saving.register_keras_serializable("keras_transformer")
class Transformer(keras.Model):
    """Translates token ids into the logits of the next target tokens.

    A functional model: `model({"source_ids": ..., "target_ids": ...})` gives
    logits for every target position at once (teacher forcing), which is what
    `model.fit` trains. `encode` and `step` run the same layers one target
    position at a time, which is what decoding and export run.

    Paper: section 3, Figure 1. Different: the options beyond the paper
    (`output_bias` and what `LayerOptions` names) are off by default;
    projections in attention have biases.

    Args:
        source_vocab_size: int, `V` of the source.
        target_vocab_size: int, `V` of the target; None for one shared
            vocabulary.
        num_layers: int, `N`, of the encoder and of the decoder.
        d_model: int, `D`.
        num_heads: int, `H`.
        d_ff: int, `F`.
        dropout: float in [0, 1), `P_drop`: rate on the sum of embedding and
            positions and on the output of each sublayer (section 5.4).
        tying: which matrices are one (section 3.4): "all" both embeddings
            and the projection (needs one vocabulary), "target" the target
            embedding and the projection, "none". None is "all" if
            `target_vocab_size` is None, else "target": two vocabularies of
            one size are still two.
        output_bias: bool, whether the logits have a bias.
        pad_id: int, fills rows up; hidden from attention.
        bos_id: int, the first id of the decoder's input.
        eos_id: int, ends a sentence on either side.
        unk_id: int, stands for ids outside the vocabulary.
        name, dtype, trainable: as of every Keras model.
        **options: the others of `keras_transformer.layers.LayerOptions`; with
            `rotate` the waves of section 3.5 are not added.

    Call arguments:
        inputs: dict of int tensors `source_ids` `(B, S)` (pieces and eos) and
            `target_ids` `(B, T)` (bos and pieces), padded with `pad_id`.
        training: bool, whether dropout is on.

    Returns:
        Float tensor `(B, T, V)`, logits.

    Raises:
        ValueError: naming the argument that does not fit.

    Example:

    >>> model = Transformer(11, num_layers=1, d_model=8, num_heads=2, d_ff=16)
    >>> logits = model({
    ...     "source_ids": np.array([[5, 6, 2]]),
    ...     "target_ids": np.array([[1, 7]]),
    ... })
    >>> tuple(logits.shape)
    (1, 2, 11)
    """

    def __init__(
        self,
        source_vocab_size,
        target_vocab_size=None,
        num_layers=6,
        d_model=512,
        num_heads=8,
        d_ff=2048,
        *,
        dropout=0.1,
        tying=None,
        output_bias=False,
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        name=None,
        dtype=None,
        trainable=True,
        **options,
    ):
        if tying is None:
            tying = "all" if target_vocab_size is None else "target"
        if target_vocab_size is None:
            target_vocab_size = source_vocab_size
        check_positive(
            source_vocab_size=source_vocab_size,
            target_vocab_size=target_vocab_size,
        )
        _check_tying(tying, source_vocab_size, target_vocab_size)
        special_ids = {
            "pad_id": pad_id,
            "bos_id": bos_id,
            "eos_id": eos_id,
            "unk_id": unk_id,
        }
        check_special_ids(
            special_ids, min(source_vocab_size, target_vocab_size)
        )
        dtype = keras.dtype_policies.get(dtype)
        options = LayerOptions(
            d_model, num_heads, d_ff, dropout=dropout, **options
        )

        # === Layers ===
        self.encoder = Encoder(
            num_layers, name="encoder", dtype=dtype, **vars(options)
        )
        self.decoder = Decoder(
            num_layers, name="decoder", dtype=dtype, **vars(options)
        )
        self.target_embedding = TokenEmbedding(
            target_vocab_size,
            d_model,
            output_bias=output_bias and tying != "none",
            name="embedding" if tying == "all" else "target_embedding",
            dtype=dtype,
        )
        self.source_embedding = self.target_embedding
        if tying != "all":
            self.source_embedding = TokenEmbedding(
                source_vocab_size,
                d_model,
                name="source_embedding",
                dtype=dtype,
            )
        self.output_projection = None
        if tying == "none":
            self.output_projection = keras.layers.Dense(
                target_vocab_size,
                use_bias=output_bias,
                name="output_projection",
                dtype=dtype,
            )
        self.positional_encoding = None
        if options.rotate is None:
            self.positional_encoding = PositionalEncoding(
                name="positional_encoding", dtype=dtype
            )
        self.embedding_dropout = Dropout(
            dropout, name="embedding_dropout", dtype=dtype
        )
        self.pad_id = pad_id

        # === Functional model ===
        source_ids = keras.Input((None,), dtype="int32", name="source_ids")
        target_ids = keras.Input((None,), dtype="int32", name="target_ids")
        super().__init__(
            inputs={"source_ids": source_ids, "target_ids": target_ids},
            outputs=self.project(self.decode(source_ids, target_ids)),
            name=name,
            trainable=trainable,
        )

        # === Config ===
        self.dtype_policy = dtype
        self.source_vocab_size = source_vocab_size
        self.target_vocab_size = target_vocab_size
        self.d_model = d_model
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.unk_id = unk_id
        self._config = {
            "source_vocab_size": source_vocab_size,
            "target_vocab_size": target_vocab_size,
            "num_layers": num_layers,
            **options.config(),
            "tying": tying,
            "output_bias": output_bias,
            **special_ids,
        }

    def embed(self, token_ids, embedding, start=0):
        """Embeds ids and adds positions (sections 3.4 and 3.5), if it does.

        Args:
            token_ids: int tensor `(B, T)`; or `(R,)`, all at one position.
            embedding: `source_embedding` or `target_embedding`.
            start: int or int scalar tensor, position of the first id.

        Returns:
            Float tensor `(B, T, D)` or `(R, D)`.
        """
        vectors = embedding(token_ids)
        if self.positional_encoding is not None:
            vectors = self.positional_encoding(vectors, start=start)
        return self.embedding_dropout(vectors)

    def encode(self, source_ids, attention_mask=None):
        """Reads the source.

        Args:
            source_ids: int tensor `(B, S)`, padded with `pad_id`.
            attention_mask: bool tensor `(B, 1, S)`, the `padding_mask` of
                the source, if it is at hand.

        Returns:
            The memory, a float tensor `(B, S, D)`.
        """
        if attention_mask is None:
            attention_mask = padding_mask(source_ids, self.pad_id)
        return self.encoder(
            self.embed(source_ids, self.source_embedding),
            attention_mask=attention_mask,
        )

    def decode(self, source_ids, target_ids, return_weights=False):
        """Reads the source and all target positions at once.

        Args:
            source_ids: int tensor `(B, S)`, padded with `pad_id`.
            target_ids: int tensor `(B, T)` (bos and pieces).
            return_weights: bool, whether to return where they looked too.

        Returns:
            Float tensor `(B, T, D)`; with `return_weights` a pair of it and
            the cross-attention weights of the last layer, `(B, H, T, S)`, 0
            on padding of the source.
        """
        mask = padding_mask(source_ids, self.pad_id)
        return self.decoder(
            self.embed(target_ids, self.target_embedding),
            self.encode(source_ids, mask),
            memory_attention_mask=mask,
            return_weights=return_weights,
        )

    def project(self, states):
        """Turns decoder states `(..., D)` into logits `(..., V)`."""
        if self.output_projection is None:
            return self.target_embedding(states, project=True)
        return self.output_projection(states)

    def start(self, source_ids):
        """Prepares decoding: what every `step` will read.

        Args:
            source_ids: int tensor `(B, S)`, padded with `pad_id`.

        Returns:
            A pair. First, what stays as it is, whatever is generated: a dict
            of `mask` `(B, 1, S)` and `memory`, the keys and values of each
            layer. Second, what each step adds to: the list of caches, one a
            layer.
        """
        mask = padding_mask(source_ids, self.pad_id)
        memory = self.decoder.project_memory(self.encode(source_ids, mask))
        caches = self.decoder.empty_caches(ops.shape(source_ids)[0])
        return {"mask": mask, "memory": memory}, caches

    def step(self, token_ids, step, sentence, caches):
        """Computes the logits after one more token of each hypothesis.

        Args:
            token_ids: int tensor `(R,)`, the ids at `step.position`.
            step: `keras_transformer.layers.Step`, the position, and which
                rows belong to a sentence if it has several.
            sentence: of `start`, for `B` sentences.
            caches: of `start` or the last `step`, for `B` sentences.

        Returns:
            Logits `(R, V)`, the new caches, and the cross-attention weights
            `(B, H, K, S)` of the last layer.
        """
        states, caches, weights = self.decoder.step(
            self.embed(token_ids, self.target_embedding, step.position),
            sentence["memory"],
            sentence["mask"],
            caches,
            step,
        )
        return self.project(states), caches, weights

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **self._config,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def _check_tying(tying, source_vocab_size, target_vocab_size):
    if tying not in TYING_MODES:
        raise ValueError(
            f"tying must be one of {TYING_MODES}, got tying={tying!r}"
        )
    if tying == "all" and source_vocab_size != target_vocab_size:
        raise ValueError(
            'tying="all" needs one vocabulary, got source_vocab_size='
            f"{source_vocab_size}, target_vocab_size={target_vocab_size}; "
            'use tying="target" or tying="none"'
        )
