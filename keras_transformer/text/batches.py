"""Batches of sentence pairs for `model.fit` (paper, section 5.1).

The paper batches "by approximate sequence length" with about 25,000 source
and as many target tokens; here a budget of positions, padding included.
"""

import array
import itertools
import logging

import numpy as np

from keras_transformer.text.buckets import plan_buckets

_logger = logging.getLogger(__name__)
_PAIRS_AT_ONCE = 100_000


def batches(
    corpus,
    source_tokenizer,
    target_tokenizer=None,
    *,
    batch_tokens=4096,
    max_length=256,
    num_buckets=10,
    shuffle=True,
    seed=0,
    steps_per_update=1,
    num_replicas=1,
):
    """Turns a parallel corpus into the batches that `model.fit` takes.

    A source is its pieces and eos. The decoder reads bos and the pieces, and
    its labels are the pieces and eos. All are padded with the pad id.

    Pairs of similar lengths share a bucket (see `plan_buckets`), and all
    batches of a bucket have one shape, so XLA compiles at most `num_buckets`
    times. The pairs of a bucket are dealt evenly to its batches; a row left
    over is all padding. On Multi30k (29,000 pairs, one vocabulary of 10,000
    pieces, 2,048 tokens a batch) 11% of all positions are padding with ten
    shapes, 16% with six and 70% with one. The share is logged at level INFO
    when the dataset is made.

    Each pass over the dataset is the next epoch and holds every pair once:
    first the pairs within each bucket are shuffled, then the batches. The
    order is a function of `seed` and the number of the pass alone.

    A mean over the tokens of a batch is not a mean over the tokens of an
    update once an update has several parts: Keras averages the means of
    accumulated batches and of replicas, which gives a token of a short part
    more say. With `A = steps_per_update`, `R = num_replicas` and a loss that
    divides `sum(token_loss * token_weights)` by the real tokens `n` of its
    part, the weights `A * R * n / N`, where `N` is the number of real tokens
    of the update, undo that. Without parts they are 1.

    Args:
        corpus: `ParallelCorpus`, or anything with lists of str `source` and
            `target`.
        source_tokenizer: `Tokenizer`.
        target_tokenizer: `Tokenizer`; None if the languages share one.
        batch_tokens: int, the most positions, padding included, that a batch
            has on either side: `B * T` and `B * S` both stay within it.
        max_length: int; a pair whose source or target has more ids, eos
            included, is dropped, and the number of such pairs logged.
        num_buckets: int, the most shapes that batches may have.
        shuffle: whether to shuffle; without it batches come by length.
        seed: int, not negative.
        steps_per_update: int, batches that one update of the weights
            accumulates (`gradient_accumulation_steps` of the optimizer). An
            epoch then has a multiple of that many batches.
        num_replicas: int, parts into which `tf.distribute` splits the rows.

    Returns:
        `tf.data.Dataset` of known length with elements `({"source_ids":
        (B, S), "target_ids": (B, T)}, labels (B, T), token_weights (B, T))`:
        int32 ids, float32 weights that are 0 on padding.

    Raises:
        ValueError: a tokenizer lacks a special id, no pair is short enough,
            the longest does not fit into `batch_tokens`, or a number is out
            of range.
    """
    _check_at_least(
        1,
        batch_tokens=batch_tokens,
        max_length=max_length,
        num_buckets=num_buckets,
        steps_per_update=steps_per_update,
        num_replicas=num_replicas,
    )
    _check_at_least(0, seed=seed)
    target_tokenizer = target_tokenizer or source_tokenizer
    _check_ids("source_tokenizer", source_tokenizer, ("pad_id", "eos_id"))
    _check_ids(
        "target_tokenizer", target_tokenizer, ("pad_id", "bos_id", "eos_id")
    )
    source, labels = _tokenize(
        corpus, source_tokenizer, target_tokenizer, max_length
    )
    buckets = plan_buckets(
        source.lengths,
        labels.lengths,
        batch_tokens=batch_tokens,
        num_buckets=num_buckets,
        row_multiple=num_replicas,
        batch_multiple=steps_per_update,
    )
    num_batches = _report(buckets, source, labels)
    epochs = itertools.count()

    def epoch():
        rng = np.random.default_rng((seed, next(epochs)))
        rng = rng if shuffle else None
        for update in _updates(buckets, steps_per_update, rng):
            yield from _fill(
                update, source, labels, target_tokenizer.bos_id, num_replicas
            )

    return _dataset(epoch, num_batches)


class _Sentences:
    """Ids of many sentences, end to end: 4 bytes an id, not a list each."""

    def __init__(self, pad_id):
        self.pad_id = pad_id
        self._ids = array.array("i")
        self._ends = array.array("q", [0])

    def append(self, ids):
        self._ids.extend(ids)
        self._ends.append(len(self._ids))

    @property
    def lengths(self):
        return np.diff(self._ends)

    def padded(self, rows, width):
        """Ids `(B, width)` of the rows, and where they are real; -1 is none."""
        ends = np.frombuffer(self._ends, np.int64)
        starts = ends[rows]  # For row -1 the end of all: an empty sentence.
        lengths = np.where(rows < 0, 0, ends[rows + 1] - starts)
        steps = np.arange(width)
        real = steps < lengths[:, None]  # (B, width)
        ids = np.full(real.shape, self.pad_id, np.int32)
        places = (starts[:, None] + steps)[real]
        ids[real] = np.frombuffer(self._ids, np.int32)[places]
        return ids, real


def _check_at_least(least, **numbers):
    for argument, number in numbers.items():
        if number < least:
            raise ValueError(
                f"{argument}: expected {least} or more, got {number}"
            )


def _check_ids(argument, tokenizer, names):
    for name in names:
        if getattr(tokenizer, name) < 0:
            raise ValueError(
                f"{argument}: batches need its {name}, but its model has "
                f"none ({name} is {getattr(tokenizer, name)})"
            )


def _tokenize(corpus, source_tokenizer, target_tokenizer, max_length):
    """Both sides as `_Sentences` with eos, without the pairs too long."""
    source = _Sentences(source_tokenizer.pad_id)
    labels = _Sentences(target_tokenizer.pad_id)
    for start in range(0, len(corpus.source), _PAIRS_AT_ONCE):
        chunk = slice(start, start + _PAIRS_AT_ONCE)
        for source_ids, target_ids in zip(
            source_tokenizer.tokenize(corpus.source[chunk]),
            target_tokenizer.tokenize(corpus.target[chunk]),
            strict=True,
        ):
            if max(len(source_ids), len(target_ids)) < max_length:
                source.append([*source_ids, source_tokenizer.eos_id])
                labels.append([*target_ids, target_tokenizer.eos_id])
    kept = len(source.lengths)
    if kept == 0:
        raise ValueError(
            f"max_length={max_length} leaves none of the "
            f"{len(corpus.source)} pairs: each has more ids than that on a "
            "side, eos included"
        )
    if kept < len(corpus.source):
        _logger.warning(
            "%d of %d pairs are longer than max_length=%d and are left out",
            len(corpus.source) - kept,
            len(corpus.source),
            max_length,
        )
    return source, labels


def _report(buckets, source, labels):
    """Logs what the plan comes to; returns the batches of an epoch."""
    num_batches = sum(bucket.num_batches for bucket in buckets)
    positions = sum(
        bucket.num_batches
        * bucket.num_rows
        * (bucket.source_length + bucket.target_length)
        for bucket in buckets
    )
    real = source.lengths.sum() + labels.lengths.sum()
    _logger.info(
        "%d pairs in %d batches of %d shapes, %.1f%% of the positions padding",
        len(source.lengths),
        num_batches,
        len(buckets),
        100 * (1 - real / positions),
    )
    return num_batches


def _updates(buckets, steps_per_update, rng):
    """One epoch: lists of (bucket, rows), a list for an update."""
    plan = [(bucket, rows) for bucket in buckets for rows in bucket.deal(rng)]
    if rng is not None:
        plan = [plan[place] for place in rng.permutation(len(plan))]
    for start in range(0, len(plan), steps_per_update):
        yield plan[start : start + steps_per_update]


def _fill(update, source, labels, bos_id, num_replicas):
    """The batches of one update, whose weights depend on all of them."""
    filled = []
    for bucket, rows in update:
        source_ids, _ = source.padded(rows, bucket.source_length)
        label_ids, real = labels.padded(rows, bucket.target_length)
        target_ids = np.full_like(label_ids, labels.pad_id)
        target_ids[:, 0] = bos_id
        target_ids[:, 1:] = label_ids[:, :-1]
        target_ids[~real] = labels.pad_id  # Else eos, or bos in an empty row.
        inputs = {"source_ids": source_ids, "target_ids": target_ids}
        filled.append((inputs, label_ids, real))
    tokens = sum(int(real.sum()) for _, _, real in filled)
    for inputs, label_ids, real in filled:
        parts = real.reshape(num_replicas, -1).astype(np.float32)  # (R, B/R*T)
        share = parts.sum(axis=1, keepdims=True) / max(tokens, 1)
        weights = parts * share * len(filled) * num_replicas
        yield inputs, label_ids, weights.reshape(real.shape)


def _dataset(epoch, num_batches):
    import tensorflow as tf

    ids = tf.TensorSpec((None, None), tf.int32)
    weights = tf.TensorSpec((None, None), tf.float32)
    structure = ({"source_ids": ids, "target_ids": ids}, ids, weights)
    dataset = tf.data.Dataset.from_generator(epoch, output_signature=structure)
    length = tf.data.experimental.assert_cardinality(num_batches)
    return dataset.apply(length).prefetch(tf.data.AUTOTUNE)
