"""The Translator: a trained model with its tokenizers, text to text."""

import json
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding import Generator, complete_options
from keras_transformer.decoding.options import check_count
from keras_transformer.folders import (
    new_folder,
    verify_checksums,
    write_checksums,
)
from keras_transformer.layers.arguments import SPECIAL_IDS
from keras_transformer.text import Tokenizer
from keras_transformer.transformer import Transformer
from keras_transformer.version import __version__

FORMAT = 1

_CONFIG = "config.json"
_TRAINING = "training.json"
_WEIGHTS = "model.weights.h5"
_SEPARATE = ["source_tokenizer.model", "target_tokenizer.model"]


class Translation(NamedTuple):
    """One hypothesis for one text.

    text: str.
    score: float, log-probability in nats (greedy), or log-probability over
        length penalty (beam).
    token_ids: list of int, eos included.
    finished: bool, False if it was cut at its largest length.
    """

    text: str
    score: float
    token_ids: list
    finished: bool


class Translator:
    """Translates text with a Transformer and its tokenizers.

    Args:
        transformer: `Transformer`.
        source_tokenizer: `Tokenizer`.
        target_tokenizer: `Tokenizer`, by default the one of the source.
        training: dict of facts about the training to keep with the model,
            anything that JSON can hold. `"examples"`, a list of source
            texts, is what exports are checked with.

    Raises:
        ValueError: if tokenizers and model disagree on a special id, a
            tokenizer knows more pieces than the model, or `training` holds
            what JSON cannot.

    Example:

    >>> tokenizer = Tokenizer.train_from_lines(["one two three"] * 9, 270)
    >>> transformer = Transformer(
    ...     270, num_layers=1, d_model=8, num_heads=2, d_ff=16)
    >>> translator = Translator(transformer, tokenizer)
    >>> len(translator.translate(["one", "", "two three"]))
    3
    """

    def __init__(
        self,
        transformer,
        source_tokenizer,
        target_tokenizer=None,
        training=None,
    ):
        self.transformer = transformer
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        self.training = dict(training or {})
        check_json(self.training)
        _check_agreement(
            transformer,
            "source",
            self.source_tokenizer,
            transformer.source_vocab_size,
        )
        _check_agreement(
            transformer,
            "target",
            self.target_tokenizer,
            transformer.target_vocab_size,
        )
        self.generator = Generator(
            transformer, self.target_tokenizer.vocab_size
        )

    def translate(self, texts, strategy="beam", batch_size=32, **options):
        """Translates texts.

        Args:
            texts: str, or list of str.
            strategy: "beam" or "greedy".
            batch_size: int, how many texts to decode at once. The result
                does not depend on it.
            **options: the inputs of that signature in
                `keras_transformer.decoding.SIGNATURES` but the ids:
                `beam_size` 4, `num_hypotheses` 1, `length_penalty` 0.6,
                `max_length` -1 (source length + 50) and `min_length` 0 for
                beam, the last two for greedy.

        Returns:
            str for a str, list of str for a list: the best hypotheses, in
            the order of the texts. A blank text gives "".

        Raises:
            ValueError: naming the argument that does not fit.
        """
        if isinstance(texts, str):
            return self.translate([texts], strategy, batch_size, **options)[0]
        found = self.hypotheses(texts, strategy, batch_size, **options)
        return [best.text for best, *_ in found]

    def hypotheses(self, texts, strategy="beam", batch_size=32, **options):
        """Translates texts and tells all about it.

        Args:
            texts: list of str.
            strategy: as of `translate`.
            batch_size: as of `translate`.
            **options: as of `translate`.

        Returns:
            A list for each text, best first, of `Translation`: at most
            `num_hypotheses` of them, and always one at least.

        Raises:
            ValueError: naming the argument that does not fit.
        """
        check_count("batch_size", batch_size, smallest=1)
        options = complete_options(strategy, options)
        source = self.tokenize_source(texts)
        # Texts of like length share a batch, so that little is padding.
        order = sorted(range(len(source)), key=lambda i: len(source[i]))
        found = [None] * len(source)
        for start in range(0, len(order), batch_size):
            chunk = order[start : start + batch_size]
            source_ids = self.pad([source[i] for i in chunk])
            rows = self._decode(source_ids, strategy, options)
            for i, row in zip(chunk, rows, strict=True):
                found[i] = row
        return found

    def tokenize_source(self, texts):
        """Gives the source ids of texts: lists of pieces and eos."""
        rows = None
        if isinstance(texts, Iterable) and not isinstance(texts, str):
            rows = list(texts)
        if rows is None or not all(isinstance(text, str) for text in rows):
            raise ValueError(
                f"texts must be a list of str, got {type(texts).__name__}: "
                f"{str(texts)[:80]!r}"
            )
        pieces = self.source_tokenizer.tokenize(rows)
        return [[*ids, self.source_tokenizer.eos_id] for ids in pieces]

    def pad(self, rows):
        """Fills rows of ids up to an int32 array `(B, S)`."""
        width = max((len(row) for row in rows), default=0)
        padded = np.full((len(rows), width), self.transformer.pad_id, np.int32)
        for row, ids in zip(padded, rows, strict=True):
            row[: len(ids)] = ids
        return padded

    def _decode(self, source_ids, strategy, options):
        """Decodes ids `(B, S)`; gives a list of `Translation` for each row."""
        function = getattr(self.generator, strategy)
        result = {
            name: tensor.numpy()
            for name, tensor in function(source_ids, **options).items()
        }
        if strategy == "greedy":
            result = {name: rows[:, None] for name, rows in result.items()}
        return [
            self._translations({name: rows[i] for name, rows in result.items()})
            for i in range(len(source_ids))
        ]

    def _translations(self, row):
        translations = []
        for ids, length, score, finished in zip(
            row["token_ids"],
            row["lengths"],
            row["scores"],
            row["finished"],
            strict=True,
        ):
            if np.isneginf(score):  # A slot for which there is no hypothesis.
                continue
            ids = ids[:length].tolist()
            text = self.target_tokenizer.detokenize(
                ids[:-1] if finished else ids
            )
            translations.append(
                Translation(text, float(score), ids, bool(finished))
            )
        return translations or [Translation("", float("-inf"), [], False)]

    def save(self, folder):
        """Writes the model, its tokenizers and what is known of them.

        Args:
            folder: where to; it is written beside and renamed, so it is
                whole or not there.

        Raises:
            ValueError: if `folder` exists.
        """
        shared = self.source_tokenizer is self.target_tokenizer
        names = ["tokenizer.model"] if shared else _SEPARATE
        config = {
            "format": FORMAT,
            "keras_transformer": __version__,
            "transformer": self.transformer.get_config(),
            "tokenizers": {"source": names[0], "target": names[-1]},
        }
        check_json(self.training)
        with new_folder(folder) as beside:
            _write_json(beside / _CONFIG, config)
            _write_json(beside / _TRAINING, self.training)
            self.transformer.save_weights(beside / _WEIGHTS)
            self.source_tokenizer.save(beside / names[0])
            self.target_tokenizer.save(beside / names[-1])
            write_checksums(beside)

    @classmethod
    def load(cls, folder):
        """Reads what `save` wrote.

        Args:
            folder: the folder.

        Returns:
            `Translator`.

        Raises:
            ValueError: if the folder is none of ours, incomplete or changed,
                or of a newer format.
        """
        folder = pathlib.Path(folder)
        if not (folder / _CONFIG).is_file():
            raise ValueError(
                f"expected a folder that Translator.save wrote, got "
                f"{str(folder)!r}, which holds no {_CONFIG}"
            )
        verify_checksums(folder)
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        if config["format"] > FORMAT:
            raise ValueError(
                f"{str(folder / _CONFIG)!r} has format {config['format']}, "
                f"this version reads up to {FORMAT}; install a newer one"
            )
        transformer = Transformer.from_config(config["transformer"])
        transformer.load_weights(folder / _WEIGHTS)
        source, target = (
            folder / config["tokenizers"][side] for side in ("source", "target")
        )
        source_tokenizer = Tokenizer.load(source)
        return cls(
            transformer,
            source_tokenizer,
            source_tokenizer if source == target else Tokenizer.load(target),
            json.loads((folder / _TRAINING).read_text(encoding="utf-8")),
        )


def check_json(training):
    """Raises ValueError, now rather than after hours, if JSON cannot hold it.

    Args:
        training: dict of facts.
    """
    try:
        json.dumps(training, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"training must hold what JSON can, got {error}"
        ) from error


def _write_json(path, value):
    text = json.dumps(value, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _check_agreement(transformer, side, tokenizer, vocab_size):
    for name in SPECIAL_IDS:
        if getattr(tokenizer, name) != getattr(transformer, name):
            raise ValueError(
                f"the {side} tokenizer has {name}={getattr(tokenizer, name)}, "
                f"the model {name}={getattr(transformer, name)}; they must "
                "agree"
            )
    if tokenizer.vocab_size > vocab_size:
        raise ValueError(
            f"the {side} tokenizer knows {tokenizer.vocab_size} pieces, the "
            f"model has {side}_vocab_size={vocab_size}; it needs as many at "
            "least"
        )
