"""The Translator: a trained model with its tokenizers, text to text."""

import secrets
import warnings
from collections.abc import Iterable
from typing import NamedTuple

from keras_transformer.decoding import Generator, complete_options
from keras_transformer.decoding.option_checks import check_number
from keras_transformer.padded_batches import (
    decode_rows,
    pad_rows,
    teacher_force_rows,
)
from keras_transformer.run_folder import check_json, read_run, write_run
from keras_transformer.special_ids import SPECIAL_IDS


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

    Warns:
        UserWarning: if the model has one embedding for both sides
            (`tying="all"`) and an id is another piece on either, since such
            a model learns less than it could.

    Example:

    >>> from keras_transformer import Tokenizer, Transformer
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
        _warn_if_ids_differ(
            transformer, self.source_tokenizer, self.target_tokenizer
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
            token_log_probs: bool, whether each `Translation` has those.
            attention: bool, whether each has it.
            **options: the other inputs of the strategy's signature in
                `keras_transformer.decoding.SIGNATURES`, which has their
                defaults; docs/decoding.md tells what they do.

        Returns:
            A list for each text, best first, of `Translation`: at most
            `num_hypotheses` of them, and always one at least.

        Raises:
            ValueError: naming the argument that does not fit.
        """
        check_number("batch_size", batch_size, 1)
        options = complete_options(
            strategy, options, self.transformer.target_vocab_size
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
        decoded = decode_rows(
            self.generator, strategy, rows, options, batch_size
        )
        found = [
            [self._translation(*hypothesis) for hypothesis in row]
            for row in decoded
        ]
        for wanted, signature, field in (
            (token_log_probs, "score", "token_log_probs"),
            (attention, "align", "attention"),
        ):
            if wanted:
                found = self._explain(
                    found, source, signature, field, batch_size
                )
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
        arrays = teacher_force_rows(
            self.generator, "score", source, target, batch_size
        )
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
        return teacher_force_rows(
            self.generator, "align", source, target, batch_size
        )

    def tokenize_source(self, texts):
        """Gives the source ids of texts: lists of pieces and eos."""
        return _tokenize(self.source_tokenizer, "texts", texts)

    def pad(self, rows):
        """Fills rows of ids up to an int32 array `(B, S)`."""
        return pad_rows(rows, self.transformer.pad_id)

    def _translation(self, token_ids, score, finished):
        text = self.target_tokenizer.detokenize(
            token_ids[:-1] if finished else token_ids
        )
        return Translation(text, score, token_ids, finished)

    def _explain(self, found, source, signature, field, batch_size):
        """Adds what teacher forcing tells of every hypothesis."""
        arrays = teacher_force_rows(
            self.generator,
            signature,
            [source[i] for i, row in enumerate(found) for _ in row],
            [each.token_ids for row in found for each in row],
            batch_size,
        )
        arrays = iter(arrays)
        return [
            [each._replace(**{field: next(arrays)}) for each in row]
            for row in found
        ]

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
        if target_prefix is None or isinstance(target_prefix, str):
            target_prefix = [target_prefix or ""] * count
        rows = _tokenize(self.target_tokenizer, "target_prefix", target_prefix)
        if len(rows) != count:
            raise ValueError(
                "target_prefix must be a str, or one for each text, got "
                f"{len(rows)} for {count} texts"
            )
        return [ids[:-1] for ids in rows]

    def save(self, folder, optimizer=False):
        """Writes the model, its tokenizers and what is known of them.

        Args:
            folder: where to; it is written beside and renamed, so it is
                whole or not there.
            optimizer: whether to write the state of a compiled model's
                optimizer too, for a training that is to go on.

        Raises:
            ValueError: if `folder` exists.
        """
        write_run(
            folder,
            self.transformer,
            self.source_tokenizer,
            self.target_tokenizer,
            self.training,
            optimizer,
        )

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
        return cls(*read_run(folder))


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


def _seeds(seed, count):
    """Gives the seed of each row: that of the call and its place in it."""
    if seed is None:
        seed = secrets.randbits(31)
    check_number("seed", seed, -(2**31))
    return [[seed, i] for i in range(count)]


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


def _warn_if_ids_differ(transformer, source_tokenizer, target_tokenizer):
    """Warns of one embedding where an id means two things."""
    tied = transformer.source_embedding is transformer.target_embedding
    if source_tokenizer is target_tokenizer or not tied:
        return
    ids = range(min(source_tokenizer.vocab_size, target_tokenizer.vocab_size))
    both = zip(
        source_tokenizer.pieces(ids), target_tokenizer.pieces(ids), strict=True
    )
    for token_id, (source, target) in enumerate(both):
        if source != target:
            warnings.warn(
                'the model has tying="all", one embedding for both '
                f"tokenizers, but id {token_id} is {source!r} of the source "
                f"and {target!r} of the target; expected one vocabulary, or a "
                'model made with tying="target" or tying="none"',
                stacklevel=3,
            )
            return
