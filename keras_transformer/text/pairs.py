"""The sentence pairs of a corpus as ids."""

import array
import logging

import numpy as np

from keras_transformer.text.bpe_dropout import BpeDropout

_logger = logging.getLogger(__name__)
_PAIRS_AT_ONCE = 100_000
# Names the draw that lengths are measured on; others are (1, ...).
_TRIAL = (0,)


class TokenizedPairs:
    """Sources and labels of a corpus, eos included, without the too long.

    Args:
        corpus: `ParallelCorpus`, or anything with lists of str `source` and
            `target`.
        source_tokenizer: `Tokenizer`.
        target_tokenizer: `Tokenizer`.
        max_length: int; a pair with more ids on a side is left out, and the
            number of such pairs logged.
        bpe_dropout: float, the rate of `BpeDropout`.
        seed: int.

    Raises:
        ValueError: no pair is short enough, or as `BpeDropout` does.

    Attributes:
        places: int array `(N,)`, where in the corpus each pair stands.
        source: `Sentences`, the best pieces of each source.
        labels: `Sentences`, likewise of each target.
    """

    def __init__(
        self,
        corpus,
        source_tokenizer,
        target_tokenizer,
        max_length,
        bpe_dropout=0.0,
        seed=0,
    ):
        self._tokenizers = source_tokenizer, target_tokenizer
        self._max_length = max_length
        self._seed = seed
        self._dropouts = None
        if bpe_dropout:
            self._dropouts = [
                BpeDropout(tokenizer, bpe_dropout, seed)
                for tokenizer in self._tokenizers
            ]
        self.source = Sentences(source_tokenizer)
        self.labels = Sentences(target_tokenizer)
        self.places = self._read(corpus)

    def _read(self, corpus):
        """Cuts all texts; returns the places of the pairs that are kept."""
        kept = []
        for start in range(0, len(corpus.source), _PAIRS_AT_ONCE):
            chunk = slice(start, start + _PAIRS_AT_ONCE)
            sides = [
                tokenizer.tokenize(texts[chunk])
                for tokenizer, texts in zip(
                    self._tokenizers,
                    (corpus.source, corpus.target),
                    strict=True,
                )
            ]
            for place, (source, target) in enumerate(
                zip(*sides, strict=True), start
            ):
                if max(len(source), len(target)) < self._max_length:
                    self.source.append(source)
                    self.labels.append(target)
                    kept.append(place)
        if not kept:
            raise ValueError(
                f"max_length={self._max_length} leaves none of the "
                f"{len(corpus.source)} pairs: each has more ids than that on "
                "a side, eos included"
            )
        if len(kept) < len(corpus.source):
            _logger.warning(
                "%d of %d pairs are longer than max_length=%d and are left out",
                len(corpus.source) - len(kept),
                len(corpus.source),
                self._max_length,
            )
        return np.array(kept)

    def lengths(self):
        """Room that the pairs need, int arrays `(N,)` of source and labels.

        With `bpe_dropout` they are those of one draw. A later draw that has
        no room gives way to the best pieces, which always fit.
        """
        found = self.source.lengths, self.labels.lengths
        if self._dropouts is None:
            return found
        everyone = np.arange(len(self.source.lengths))
        return [
            np.clip(drawn.lengths, best, self._max_length)
            for best, drawn in zip(
                found, self._draw(everyone, _TRIAL), strict=True
            )
        ]

    def padded(self, rows, source_length, target_length, draw):
        """Ids of some pairs as arrays.

        Args:
            rows: int array `(B,)`, places of pairs; -1 is a pair of nothing.
            source_length: int, `S`.
            target_length: int, `T`.
            draw: tuple of int, names the draw of the pieces.

        Returns:
            Source ids `(B, S)`, label ids `(B, T)` and a bool array `(B, T)`
            that tells where the labels are real.
        """
        widths = source_length, target_length
        best = [
            side.padded(rows, width)
            for side, width in zip(
                (self.source, self.labels), widths, strict=True
            )
        ]
        if self._dropouts is not None:
            drawn = self._draw(rows, (1, *draw))
            for sentences, width, (ids, real) in zip(
                drawn, widths, best, strict=True
            ):
                fits = (sentences.lengths <= width) & (rows >= 0)
                places = np.flatnonzero(fits)
                ids[places], real[places] = sentences.padded(places, width)
        (source_ids, _), (label_ids, real) = best
        return source_ids, label_ids, real

    def _draw(self, rows, draw):
        """Other pieces for some pairs, a function of seed and draw."""
        rng = np.random.default_rng((self._seed, *draw))
        for side, dropout, tokenizer in zip(
            (self.source, self.labels),
            self._dropouts,
            self._tokenizers,
            strict=True,
        ):
            sentences = Sentences(tokenizer)
            for row in rows:
                sentences.append(dropout(side[row], rng) if row >= 0 else [])
            yield sentences


class Sentences:
    """Ids of many sentences, end to end: 4 bytes an id, not a list each.

    Args:
        tokenizer: `Tokenizer`, for its pad and eos.
    """

    def __init__(self, tokenizer):
        self._pad_id = tokenizer.pad_id
        self._eos_id = tokenizer.eos_id
        self._ids = array.array("i")
        self._ends = array.array("q", [0])

    def append(self, ids):
        """Adds a sentence, and eos to it."""
        self._ids.extend(ids)
        self._ids.append(self._eos_id)
        self._ends.append(len(self._ids))

    def __getitem__(self, row):
        """The ids of a sentence, without eos."""
        start, end = self._ends[row], self._ends[row + 1]
        return self._ids[start : end - 1]

    @property
    def lengths(self):
        """Int array `(N,)`, ids of each sentence, eos included."""
        return np.diff(self._ends)

    def padded(self, rows, width):
        """Ids `(B, width)` of the rows, and where they are real; -1 is none."""
        ends = np.frombuffer(self._ends, np.int64)
        starts = ends[rows]  # For row -1 the end of all: an empty sentence.
        lengths = np.where(rows < 0, 0, ends[rows + 1] - starts)
        steps = np.arange(width)
        real = steps < lengths[:, None]  # (B, width)
        ids = np.full(real.shape, self._pad_id, np.int32)
        places = (starts[:, None] + steps)[real]
        ids[real] = np.frombuffer(self._ids, np.int32)[places]
        return ids, real
