"""BPE-dropout: the same words in other pieces each time.

Paper: Provilkov et al., 2020, https://arxiv.org/abs/1910.13267.
"""

import itertools

import numpy as np
from sentencepiece import sentencepiece_model_pb2

_BLANK = "\u2581"
# Ways to cut a word, to pick from.
_NUM_CUTS = 32


class BpeDropout:
    """Cuts sentences into other pieces than their best ones.

    A BPE model builds a word from its characters by merges, the best one
    first. Here each merge that is possible is left out with some probability,
    time and again, until none remains. A model that sees words in many ways
    learns how they are made up, which helps where data is scarce.

    Different from the paper: a word is cut in at most 32 ways, each drawn when
    it is first picked, since merging takes time. SentencePiece's own sampling
    gives other pieces in every process, whatever the seed, so that no training
    with it could be repeated.

    Args:
        tokenizer: `Tokenizer` whose model is BPE.
        rate: float in [0, 1], the probability to leave out a merge; with 0
            the pieces are the best ones, with 1 characters.
        seed: int.

    Raises:
        ValueError: if the model is not BPE, or `rate` is out of range.
    """

    def __init__(self, tokenizer, rate, seed=0):
        if not 0 <= rate <= 1:
            raise ValueError(f"bpe_dropout: expected 0 to 1, got {rate}")
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(tokenizer.model_proto)
        if model.trainer_spec.model_type != model.trainer_spec.BPE:
            raise ValueError(
                "bpe_dropout: expected a tokenizer whose model is bpe, got "
                "one without merges"
            )
        self._rate = rate
        self._seed = seed
        normal = sentencepiece_model_pb2.ModelProto.SentencePiece.NORMAL
        self._pieces = [
            piece.piece if piece.type == normal else None
            for piece in model.pieces
        ]
        self._scores = [piece.score for piece in model.pieces]
        self._ids = {
            piece: place
            for place, piece in enumerate(self._pieces)
            if piece is not None
        }
        self._cuts = {}

    def __call__(self, ids, rng):
        """Cuts a sentence anew.

        Args:
            ids: sequence of int, the best pieces of a sentence.
            rng: `numpy.random.Generator`.

        Returns:
            List of int, pieces of the same text.
        """
        words = self._words(ids)
        picks = rng.integers(_NUM_CUTS, size=len(words)).tolist()
        return list(
            itertools.chain.from_iterable(
                self._cut(word, pick)
                for word, pick in zip(words, picks, strict=True)
            )
        )

    def _words(self, ids):
        """Splits where a piece begins with a blank."""
        words = []
        for token_id in ids:
            piece = self._pieces[token_id]
            if not words or (piece and piece[0] == _BLANK):
                words.append([])
            words[-1].append(token_id)
        return [tuple(word) for word in words]

    def _cut(self, word, pick):
        cut = self._cuts.get((word, pick))
        if cut is None:
            # A function of the two, whenever they turn up.
            rng = np.random.default_rng((self._seed, pick, *word))
            cut = self._merge(self._atoms(word), rng)
            self._cuts[word, pick] = cut
        return cut

    def _atoms(self, word):
        """The characters; bytes and what is unknown stay as they are."""
        atoms = []
        for token_id in word:
            piece = self._pieces[token_id] or ""
            if piece and all(character in self._ids for character in piece):
                atoms += [self._ids[character] for character in piece]
            else:
                atoms.append(token_id)
        return atoms

    def _merge(self, atoms, rng):
        """Merges until nothing is left that may be merged."""
        pieces = list(atoms)
        while len(pieces) > 1:
            kept = (rng.random(len(pieces) - 1) >= self._rate).tolist()
            merges = [
                (self._scores[merged], -place, merged)
                for place, merged in enumerate(self._merged(pieces))
                if merged is not None and kept[place]
            ]
            if not merges:
                break
            _, place, merged = max(merges)
            pieces[-place : -place + 2] = [merged]
        return pieces

    def _merged(self, pieces):
        """The piece that each one and the next make, or None."""
        texts = [self._pieces[token_id] for token_id in pieces]
        return [
            self._ids.get(one + other) if one and other else None
            for one, other in itertools.pairwise(texts)
        ]
