"""The sentence pairs of a corpus as ids, and other ways to cut them.

BPE-dropout: Provilkov et al., 2020, https://arxiv.org/abs/1910.13267.
Subword regularization: Kudo, 2018, https://arxiv.org/abs/1804.10959.
"""

import array
import logging

import numpy as np

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
        alpha: float for segmentations that are drawn (see
            `Tokenizer.tokenize`), or None.
        seed: int.

    Raises:
        ValueError: no pair is short enough.

    Attributes:
        places: int array `(N,)`, where in the corpus each pair stands.
        source: `Sentences`, the best segmentation of each source.
        labels: `Sentences`, likewise of each target.
    """

    def __init__(
        self,
        corpus,
        source_tokenizer,
        target_tokenizer,
        max_length,
        alpha=None,
        seed=0,
    ):
        self._tokenizers = source_tokenizer, target_tokenizer
        self._alpha = alpha
        self._seed = seed
        self._max_length = max_length
        self.source = Sentences(source_tokenizer)
        self.labels = Sentences(target_tokenizer)
        self.places = self._read(corpus)
        if alpha is not None:
            self._texts = [
                [texts[place] for place in self.places]
                for texts in (corpus.source, corpus.target)
            ]

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

        With `alpha` they are those of one draw. A later draw that has no room
        gives way to the best segmentation, which always fits.
        """
        found = self.source.lengths, self.labels.lengths
        if self._alpha is None:
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
            draw: tuple of int, names the draw of the segmentations.

        Returns:
            Source ids `(B, S)`, label ids `(B, T)` and a bool array `(B, T)`
            that tells where the labels are real.
        """
        widths = source_length, target_length
        plain = [
            side.padded(rows, width)
            for side, width in zip(
                (self.source, self.labels), widths, strict=True
            )
        ]
        if self._alpha is None:
            (source_ids, _), (label_ids, real) = plain
            return source_ids, label_ids, real
        found = []
        drawn = self._draw(rows, (1, *draw))
        for sentences, width, (ids, real) in zip(
            drawn, widths, plain, strict=True
        ):
            fits = np.flatnonzero((sentences.lengths <= width) & (rows >= 0))
            ids[fits], real[fits] = sentences.padded(fits, width)
            found += [ids, real]
        source_ids, _, label_ids, real = found
        return source_ids, label_ids, real

    def _draw(self, rows, draw):
        """Other segmentations of some pairs, a function of seed and draw."""
        for side, tokenizer in enumerate(self._tokenizers):
            key = np.random.SeedSequence((self._seed, side, *draw))
            texts = self._texts[side]
            sentences = Sentences(tokenizer)
            for ids in tokenizer.tokenize(
                ["" if row < 0 else texts[row] for row in rows],
                alpha=self._alpha,
                seed=int(key.generate_state(1)[0]),
            ):
                sentences.append(ids)
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
