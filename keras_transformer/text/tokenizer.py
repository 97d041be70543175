"""Subword tokenizer: text to ids and back, in Python and inside a graph.

Paper: Vaswani et al., 2017, section 5.1, which shares one byte-pair
vocabulary of 37,000 pieces between source and target.
"""

import functools
import hashlib
import os
import pathlib

import sentencepiece

from keras_transformer.text.corpus import read_lines
from keras_transformer.text.vocabulary import learn_vocabulary


class Tokenizer:
    r"""Splits text into pieces of one SentencePiece model.

    Neither way adds or needs bos and eos: who frames a sentence adds them.
    Nothing a user types becomes a special id, not even `"</s>"`. Python and
    TensorFlow give the same ids for every string, NUL bytes included.

    The model normalises text first. Under the default rule, `nmt_nfkc`,
    blanks, tabs and line ends become one blank, those at either end and a
    byte-order mark vanish, and compatibility characters are folded (U+2026
    becomes three dots; both ways to write an accent are one). With byte
    fallback the rest comes back unchanged, save U+2581, which stands for a
    blank inside the model; without it, unknown characters become U+2047.

    Args:
        model_proto: bytes of any SentencePiece model.

    Raises:
        ValueError: the bytes are no SentencePiece model.

    Example:
    >>> lines = ["low lower lowest", "new newer newest"] * 9
    >>> tokenizer = Tokenizer.train_from_lines(lines, 275)
    >>> ids = tokenizer.tokenize("a newer owl")
    >>> tokenizer.detokenize(ids)
    'a newer owl'
    """

    def __init__(self, model_proto):
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model_proto or b"none")
        except RuntimeError as error:
            raise ValueError(
                "expected the bytes of a SentencePiece model, got "
                f"{len(model_proto)} bytes that are none"
            ) from error

    @classmethod
    def load(cls, path):
        """Reads a model file.

        Args:
            path: name of a file written by `save` or by SentencePiece.

        Returns:
            `Tokenizer`.

        Raises:
            ValueError: the file is missing or holds no SentencePiece model.
        """
        try:
            return cls(pathlib.Path(path).read_bytes())
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path}: cannot load a tokenizer: {error}"
            ) from error

    def save(self, path):
        """Writes the model file, which every SentencePiece tool reads."""
        pathlib.Path(path).write_bytes(self.model_proto)

    @classmethod
    def train(cls, files, vocab_size, **options):
        """Learns a vocabulary from text files.

        Args:
            files: list of names of text files, plain or `.gz`; those of both
                languages for one shared vocabulary.
            vocab_size: int, number of pieces, special ones included.
            **options: those of `learn_vocabulary`, such as `model_type`.

        Returns:
            `Tokenizer`.

        Raises:
            ValueError: a file is missing or not UTF-8, or the texts do not
                allow `vocab_size`.
        """
        if isinstance(files, (str, os.PathLike)):
            files = [files]
        lines = (line for path in files for line in read_lines(path))
        return cls.train_from_lines(lines, vocab_size, **options)

    @classmethod
    def train_from_lines(cls, lines, vocab_size, **options):
        """Learns a vocabulary from lines; the same lines give the same model.

        Args:
            lines: iterable of str.
            vocab_size: int, number of pieces, special ones included.
            **options: those of `learn_vocabulary`.

        Returns:
            `Tokenizer`.

        Raises:
            ValueError: there is no text, it does not allow `vocab_size`, or
                an option is refused.
        """
        return cls(learn_vocabulary(lines, vocab_size, **options))

    @property
    def model_proto(self):
        """Bytes of the SentencePiece model."""
        return self._processor.serialized_model_proto()

    @property
    def vocab_size(self):
        """Number of pieces; ids run from 0 to one less."""
        return self._processor.vocab_size()

    @property
    def pad_id(self):
        """Id of the padding; -1 if the model, trained elsewhere, has none."""
        return self._processor.pad_id()

    @property
    def bos_id(self):
        """Id that begins a target; -1 if the model has none."""
        return self._processor.bos_id()

    @property
    def eos_id(self):
        """Id that ends a sentence; -1 if the model has none."""
        return self._processor.eos_id()

    @property
    def unk_id(self):
        """Id of a character that the vocabulary cannot spell."""
        return self._processor.unk_id()

    def tokenize(self, texts):
        """Turns text into ids, without bos and eos.

        Args:
            texts: str, or list of str.

        Returns:
            List of int for a str, list of such lists for a list. A blank
            text gives an empty list.

        Raises:
            ValueError: something in `texts` is no str, or one that UTF-8
                cannot hold (half a surrogate pair).
        """
        texts = texts if isinstance(texts, str) else list(texts)
        for text in [texts] if isinstance(texts, str) else texts:
            if not isinstance(text, str):
                raise ValueError(f"texts: expected str, got {text!r}")
        try:
            return self._processor.encode(texts)
        except (RuntimeError, TypeError) as error:
            raise ValueError(
                "texts: expected text that UTF-8 can hold, got half a "
                "surrogate pair"
            ) from error

    def detokenize(self, ids):
        """Turns ids into text.

        Pad, bos and eos give nothing. Byte pieces that do not make up a
        character give U+FFFD, so that the text is always valid.

        Args:
            ids: list (or 1-D array) of int, or list of such lists.

        Returns:
            Str for one list of ids, list of str for a list of lists.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        if ids and hasattr(ids[0], "__len__"):
            return [self.detokenize(row) for row in ids]
        self._check_ids(ids)
        return self._processor.decode(ids)

    def pieces(self, ids):
        """Names the pieces of ids, to look at.

        Args:
            ids: list (or 1-D array) of int.

        Returns:
            List of str, one a piece; U+2581 marks where a blank goes before.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)
        self._check_ids(ids)
        return self._processor.id_to_piece(ids)

    def _check_ids(self, ids):
        for token_id in ids:
            if not 0 <= token_id < self.vocab_size:
                raise ValueError(
                    f"ids: {token_id} is outside the vocabulary, expected 0 "
                    f"to {self.vocab_size - 1}"
                )

    @functools.cached_property
    def tensor_tokenizer(self):
        """The `tensorflow_text.SentencepieceTokenizer` of the same model.

        A `tf.Module` that is saved with a function over this tokenizer has
        to hold it as an attribute. It is made at the first use, since
        tensorflow-text is slow to import and Python does without it.
        """
        try:
            import tensorflow as tf
            import tensorflow_text
        except ImportError as error:
            raise ImportError(
                "tokenizing inside a graph needs tensorflow-text: "
                "pip install tensorflow-text"
            ) from error
        # Models restored from SavedModels share one resource for each name in
        # a process, whatever they hold, so the name says what is in it.
        digest = hashlib.sha256(self.model_proto).hexdigest()[:16]
        with tf.init_scope():
            return tensorflow_text.SentencepieceTokenizer(
                model=self.model_proto,
                out_type=tf.int32,
                name=f"sentencepiece_{digest}",
            )

    def tokenize_tensor(self, texts):
        """Turns a tensor of texts into ids, inside a graph if need be.

        Args:
            texts: string tensor `(B,)`, UTF-8.

        Returns:
            `tf.RaggedTensor` `(B, None)`, int32, the ids of `tokenize`.
        """
        return self.tensor_tokenizer.tokenize(texts)

    def detokenize_tensor(self, ids):
        """Turns a tensor of ids into texts, inside a graph if need be.

        Args:
            ids: `tf.RaggedTensor` or tensor `(B, None)`, int32. An id
                outside the vocabulary fails the whole batch.

        Returns:
            String tensor `(B,)`, the texts of `detokenize`.
        """
        return self.tensor_tokenizer.detokenize(ids)
