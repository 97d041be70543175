"""Choosing batch shapes that waste little on padding."""

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Bucket:
    """Pairs that are batched together, all batches in one shape.

    Attributes:
        pairs: int array, positions of the pairs in the corpus.
        source_length: int, `S` of every batch.
        target_length: int, `T` of every batch.
        num_rows: int, `B` of every batch.
        num_batches: int.
    """

    pairs: np.ndarray
    source_length: int
    target_length: int
    num_rows: int
    num_batches: int

    def deal(self, rng=None):
        """Deals the pairs to the batches, one after the other like cards.

        Args:
            rng: `numpy.random.Generator` that shuffles them first, or None.

        Returns:
            Int array `(num_batches, num_rows)` of positions in the corpus;
            -1 marks a row without a pair.
        """
        pairs = self.pairs if rng is None else rng.permutation(self.pairs)
        places = np.full(self.num_rows * self.num_batches, -1)
        places[: len(pairs)] = pairs
        return places.reshape(self.num_rows, self.num_batches).T


def plan_buckets(
    source_lengths,
    target_lengths,
    *,
    batch_tokens,
    num_buckets=10,
    row_multiple=1,
    batch_multiple=1,
):
    """Splits pairs into buckets by length, so that padding is lowest.

    The length of a pair is that of its longer side, and the batches of a
    bucket are padded to its longest source and its longest target. Of all
    ways to cut the range of lengths into at most `num_buckets`, this is the
    one with the fewest positions in all, found by dynamic programming. Each
    bucket has enough for one full batch, if the corpus has, so that no
    update rests on a handful of rare long sentences.

    A bucket deals its pairs evenly: of 130 pairs at 128 rows a batch come two
    batches of 65, not one full and one nearly empty.

    Args:
        source_lengths: int array `(N,)`, ids of each source, eos included.
        target_lengths: int array `(N,)`, likewise.
        batch_tokens: int, the most positions of a batch on either side.
        num_buckets: int, the most buckets.
        row_multiple: int that divides the rows of every batch.
        batch_multiple: int that divides the number of batches in all.

    Returns:
        List of `Bucket`, short ones first.

    Raises:
        ValueError: the longest pair does not fit into `batch_tokens`.
    """
    lengths = np.stack([source_lengths, target_lengths], axis=1)  # (N, 2)
    longest = int(lengths.max())
    if longest * row_multiple > batch_tokens:
        raise ValueError(
            f"batch_tokens={batch_tokens} is less than the longest pair "
            f"needs, {longest * row_multiple} positions ({row_multiple} rows "
            f"of {longest}): raise batch_tokens or lower max_length"
        )
    bounds = _best_bounds(lengths, batch_tokens, num_buckets)
    places = np.searchsorted(bounds, lengths.max(axis=1))
    parts = [np.flatnonzero(places == place) for place in range(len(bounds))]
    buckets = [
        _shape(lengths, part, batch_tokens, row_multiple) for part in parts
    ]
    missing = -sum(b.num_batches for b in buckets) % batch_multiple
    if missing:
        largest = max(
            range(len(parts)), key=lambda part: buckets[part].num_batches
        )
        buckets[largest] = _shape(
            lengths, parts[largest], batch_tokens, row_multiple, missing
        )
    return buckets


def _best_bounds(lengths, batch_tokens, num_buckets):
    """The greatest length of each bucket, ascending."""
    steps, step_of_pair = np.unique(lengths.max(axis=1), return_inverse=True)
    counts = np.bincount(step_of_pair)
    widths = np.zeros((len(steps), 2), np.int64)
    np.maximum.at(widths, step_of_pair, lengths)
    # Positions of a bucket that holds the steps from i to j, j not included.
    cost = np.full((len(steps) + 1, len(steps) + 1), np.inf)
    for i in range(len(steps)):
        pairs = np.cumsum(counts[i:])
        padded = np.maximum.accumulate(widths[i:])
        full = pairs * padded.max(axis=1) >= batch_tokens
        cost[i, i + 1 :] = np.where(full, pairs * padded.sum(axis=1), np.inf)
    # Fewest positions of all pairs before step j, in one bucket, two, ...
    fewest, last_cuts = [cost[0]], [np.zeros(len(steps) + 1, int)]
    for _ in range(1, num_buckets):
        totals = fewest[-1][:, None] + cost
        last_cuts.append(totals.argmin(axis=0))
        fewest.append(totals.min(axis=0))
    num_used = int(np.argmin([totals[-1] for totals in fewest]))
    cut, bounds = len(steps), []
    for cuts in last_cuts[num_used::-1]:
        bounds.append(steps[cut - 1])
        cut = cuts[cut]
    return bounds[::-1]


def _shape(lengths, part, batch_tokens, row_multiple, extra_batches=0):
    """The `Bucket` of some pairs: as few batches as hold them, all alike."""
    source_length, target_length = lengths[part].max(axis=0).tolist()
    most_rows = batch_tokens // max(source_length, target_length)
    most_rows -= most_rows % row_multiple
    num_batches = math.ceil(len(part) / most_rows) + extra_batches
    num_rows = math.ceil(len(part) / num_batches / row_multiple) * row_multiple
    return Bucket(part, source_length, target_length, num_rows, num_batches)
