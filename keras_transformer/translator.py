"""The Translator: a trained model with its tokenizers, text to text."""

import json
import pathlib
import secrets
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding import (
    SIGNATURES,
    Generator,
    complete_options,
)
from keras_transformer.decoding.options import check_ids, check_number
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
    score: float, log-probability in nats (greedy, sample), or what beam
        search ranks by.
    token_ids: list of int, eos included.
    finished: bool, False if it was cut at its largest length.
    token_log_probs: float32 array, one for each of `token_ids`, in nats,
        where they were asked for.
    attention: float32 array `(T, S)`, what each of `token_ids` attended to
        in the source (pieces and eos), where it was asked for.
    """

    text: str
    score: float
    token_ids: list
    finished: bool
    token_log_probs: object = None
    attention: object = None


class Score(NamedTuple):
    """How likely a model finds a given translation.

    score: float, its log-probability in nats, eos included.
    token_ids: list of int, its pieces and eos.
    token_log_probs: float32 array, the log-probability of each.
    """

    score: float
    token_ids: list
    token_log_probs: object


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
            strategy: "beam", "greedy" or "sample".
            batch_size: int, how many texts to decode at once. The result
                does not depend on it.
            **options: as of `hypotheses`.

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

    def hypotheses(
        self,
        texts,
        strategy="beam",
        batch_size=32,
        *,
        target_prefix=None,
        seed=None,
        token_log_probs=False,
        attention=False,
        **options,
    ):
        """Translates texts and tells all about it.

        Args:
            texts: list of str.
            strategy: as of `translate`.
            batch_size: as of `translate`.
            target_prefix: str, or list of a str for each text, how its
                translation must begin; "" and None force nothing.
            seed: int32, for "sample": text `i` has the seed `(seed, i)`, so
                the same call gives the same texts. None draws a new one.
            token_log_probs: bool, whether to give those.
            attention: bool, whether to give it.
            **options: the other inputs of the strategy's signature in
                `keras_transformer.decoding.SIGNATURES`, which has their
                defaults; `greedy_search`, `beam_search` and `sample` tell
                what they do.

        Returns:
            A list for each text, best first, of `Translation`: at most
            `num_hypotheses` of them, and always one at least.

        Raises:
            ValueError: naming the argument that does not fit.
        """
        check_number("batch_size", batch_size, 1)
        options = complete_options(strategy, options)
        check_ids(
            "forbidden_ids",
            options["forbidden_ids"],
            self.transformer.target_vocab_size,
        )
        source = self.tokenize_source(texts)
        rows = {
            "source_ids": source,
            "target_prefix": self._prefixes(target_prefix, len(source)),
        }
        if strategy == "sample":
            rows["seed"] = _seeds(seed, len(source))
        elif seed is not None:
            raise ValueError(
                'seed is for strategy="sample", got '
                f"strategy={strategy!r}, seed={seed!r}"
            )
        found = [None] * len(source)
        for chunk in _chunks(source, batch_size):
            inputs = {
                name: self.pad([values[i] for i in chunk])
                for name, values in rows.items()
            }
            results = self._decode(strategy, {**options, **inputs})
            for i, row in zip(chunk, results, strict=True):
                found[i] = row
        if token_log_probs:
            found = self._explain(found, source, "score", "token_log_probs")
        if attention:
            found = self._explain(found, source, "align", "attention")
        return found

    def score(self, texts, translations, batch_size=32):
        """Tells how likely given translations are.

        Args:
            texts: list of str.
            translations: list of str, one for each text.
            batch_size: as of `translate`.

        Returns:
            A list of `Score`.

        Raises:
            ValueError: naming the argument that does not fit.
        """
        source, target = self._pairs(texts, translations, batch_size)
        arrays = self._teacher_forced("score", source, target, batch_size)
        return [
            Score(float(array.sum()), ids, array)
            for ids, array in zip(target, arrays, strict=True)
        ]

    def align(self, texts, translations, batch_size=32):
        """Tells where in a text each piece of its translation comes from.

        Args:
            texts: list of str.
            translations: list of str, one for each text.
            batch_size: as of `translate`.

        Returns:
            A list of float32 arrays `(T, S)`, for each target piece, and eos,
            the attention to each source piece, and eos: the mean over the
            heads of the last layer's cross-attention.

        Raises:
            ValueError: naming the argument that does not fit.
        """
        source, target = self._pairs(texts, translations, batch_size)
        return self._teacher_forced("align", source, target, batch_size)

    def tokenize_source(self, texts):
        """Gives the source ids of texts: lists of pieces and eos."""
        return _tokenize(self.source_tokenizer, "texts", texts)

    def pad(self, rows):
        """Fills rows of ids up to an int32 array `(B, S)`."""
        width = max((len(row) for row in rows), default=0)
        padded = np.full((len(rows), width), self.transformer.pad_id, np.int32)
        for row, ids in zip(padded, rows, strict=True):
            row[: len(ids)] = ids
        return padded

    def _decode(self, strategy, inputs):
        """Decodes a batch; gives a list of `Translation` for each row."""
        function = getattr(self.generator, strategy)
        result = {
            name: tensor.numpy() for name, tensor in function(**inputs).items()
        }
        if strategy != "beam":
            result = {name: rows[:, None] for name, rows in result.items()}
        return [
            self._translations({name: rows[i] for name, rows in result.items()})
            for i in range(len(inputs["source_ids"]))
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

    def _explain(self, found, source, signature, field):
        """Adds what teacher forcing tells of every hypothesis."""
        sources = [source[i] for i, row in enumerate(found) for _ in row]
        targets = [each.token_ids for row in found for each in row]
        arrays = iter(self._teacher_forced(signature, sources, targets))
        return [
            [each._replace(**{field: next(arrays)}) for each in row]
            for row in found
        ]

    def _teacher_forced(self, signature, source, target, batch_size=32):
        """Runs `score` or `align`; gives an array for each pair of rows."""
        function = getattr(self.generator, signature)
        output = SIGNATURES[signature].outputs[0].name
        found = [None] * len(source)
        for chunk in _chunks(target, batch_size):
            arrays = function(
                self.pad([source[i] for i in chunk]),
                self.pad([target[i] for i in chunk]),
            )[output].numpy()
            for i, array in zip(chunk, arrays, strict=True):
                found[i] = array[: len(target[i])]
                if array.ndim > 1:
                    found[i] = found[i][:, : len(source[i])]
        return found

    def _pairs(self, texts, translations, batch_size):
        check_number("batch_size", batch_size, 1)
        source = self.tokenize_source(texts)
        target = _tokenize(self.target_tokenizer, "translations", translations)
        if len(source) != len(target):
            raise ValueError(
                "translations must be one for each text, got "
                f"{len(target)} for {len(source)} texts"
            )
        return source, target

    def _prefixes(self, target_prefix, count):
        """Gives the pieces with which each translation must begin."""
        if target_prefix is None:
            target_prefix = ""
        if isinstance(target_prefix, str):
            target_prefix = [target_prefix] * count
        rows = _tokenize(self.target_tokenizer, "target_prefix", target_prefix)
        if len(rows) != count:
            raise ValueError(
                "target_prefix must be a str, or one for each text, got "
                f"{len(rows)} for {count} texts"
            )
        return [ids[:-1] for ids in rows]

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


def _tokenize(tokenizer, name, texts):
    """Gives the ids of texts: lists of pieces and eos."""
    rows = None
    if isinstance(texts, Iterable) and not isinstance(texts, str):
        rows = list(texts)
    if rows is None or not all(isinstance(text, str) for text in rows):
        raise ValueError(
            f"{name} must be a list of str, got {type(texts).__name__}: "
            f"{str(texts)[:80]!r}"
        )
    return [[*ids, tokenizer.eos_id] for ids in tokenizer.tokenize(rows)]


def _chunks(rows, batch_size):
    """Splits the indices of rows; rows of like length share a batch."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def _seeds(seed, count):
    """Gives the seed of each row: that of the call and its place in it."""
    if seed is None:
        seed = secrets.randbits(31)
    check_number("seed", seed, -(2**31))
    return [[seed, i] for i in range(count)]


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
