"""Batches of sentence pairs for `model.fit` (paper, section 5.1).

The paper batches "by approximate sequence length" with about 25,000 source
and as many target tokens; here a budget of positions, padding included.
"""

import itertools
import logging

import numpy as np

from keras_transformer.text.buckets import plan_buckets
from keras_transformer.text.pairs import TokenizedPairs

_logger = logging.getLogger(__name__)


def batches(corpus, source_tokenizer, target_tokenizer=None, **options):
    """Turns a parallel corpus into the batches that `model.fit` takes.

    Each pass over the dataset is the next epoch. To begin elsewhere than at
    the start, see `BatchPlan`, which this calls and whose options it takes.

    Args:
        corpus: `ParallelCorpus`, or anything with lists of str `source` and
            `target`.
        source_tokenizer: `Tokenizer`.
        target_tokenizer: `Tokenizer`; None if the languages share one.
        **options: those of `BatchPlan`.

    Returns:
        `tf.data.Dataset` of known length with elements `({"source_ids":
        (B, S), "target_ids": (B, T)}, labels (B, T), token_weights (B, T))`:
        int32 ids, float32 weights that are 0 on padding.

    Raises:
        ValueError: as `BatchPlan` does.
    """
    plan = BatchPlan(corpus, source_tokenizer, target_tokenizer, **options)
    return plan.one_pass_after_another()


class BatchPlan:
    """Decides which sentence pairs make up which batch.

    A source is its pieces and eos. The decoder reads bos and the pieces, and
    its labels are the pieces and eos. All are padded with the pad id.

    Pairs of similar lengths share a bucket (see `plan_buckets`), and all
    batches of a bucket have one shape, so XLA compiles at most `num_buckets`
    times. The pairs of a bucket are dealt evenly to its batches; a row left
    over is all padding. On Multi30k (29,000 pairs, one vocabulary of 10,000
    pieces, 2,048 tokens a batch) 11% of all positions are padding with ten
    shapes, 16% with six and 70% with one. The share is logged at level INFO
    when the dataset is made.

    Each pass holds every pair once: first the pairs within each bucket are
    shuffled, then the batches. The order is a function of `seed` and the
    number of the pass alone.

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
        bpe_dropout: float, the probability to leave out a merge, so that
            each pass cuts the words into other pieces (see `BpeDropout`).

    Raises:
        ValueError: a tokenizer lacks a special id, no pair is short enough,
            the longest does not fit into `batch_tokens`, or a number is out
            of range.
    """

    def __init__(
        self,
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
        bpe_dropout=0.0,
    ):
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
        self._shuffle = shuffle
        self._seed = seed
        self._steps_per_update = steps_per_update
        self._num_replicas = num_replicas
        self._pad_id = target_tokenizer.pad_id
        self._bos_id = target_tokenizer.bos_id
        self._pairs = TokenizedPairs(
            corpus,
            source_tokenizer,
            target_tokenizer,
            max_length,
            bpe_dropout,
            seed,
        )
        lengths = self._pairs.lengths()
        self._buckets = plan_buckets(
            *lengths,
            batch_tokens=batch_tokens,
            num_buckets=num_buckets,
            row_multiple=num_replicas,
            batch_multiple=steps_per_update,
        )
        self._report(sum(map(np.sum, lengths)))

    def __len__(self):
        """The batches of one pass."""
        return sum(bucket.num_batches for bucket in self._buckets)

    @property
    def tokens_per_batch(self):
        """Real target tokens of a batch on average, eos included."""
        return self._pairs.labels.lengths.sum() / len(self)

    def describe(self, batch):
        """Tells what a batch of `endless()` holds.

        Args:
            batch: int, its number.

        Returns:
            str with its shape and the first of its pairs, counted from 1.
        """
        number, place = divmod(batch, len(self))
        bucket, rows = self._deal(number)[place]
        pairs = self._pairs.places[rows[rows >= 0]] + 1
        first = ", ".join(map(str, pairs[:3]))
        return (
            f"{bucket.num_rows} rows of {bucket.source_length} source and "
            f"{bucket.target_length} target ids, the pairs {first}, ... of "
            "the corpus"
        )

    def one_pass_after_another(self):
        """A dataset of `len(self)` batches; each iteration is the next pass.

        Returns:
            `tf.data.Dataset`, see `batches`.
        """
        import tensorflow as tf

        passes = itertools.count()
        dataset = _dataset(lambda: self._one_pass(next(passes)))
        return dataset.apply(tf.data.experimental.assert_cardinality(len(self)))

    def endless(self, start=0):
        """A dataset of pass after pass, for `fit(steps_per_epoch=...)`.

        Each iteration begins at the same batch, so that training can go on
        where it stopped.

        Args:
            start: int, number of the batch to begin with, counted from the
                first of the first pass; a multiple of `steps_per_update`.

        Returns:
            `tf.data.Dataset` without end, see `batches`.
        """
        _check_at_least(0, start=start)
        if start % self._steps_per_update:
            raise ValueError(
                f"start: expected a multiple of steps_per_update="
                f"{self._steps_per_update}, got {start}"
            )

        def stream():
            first, skipped = divmod(start, len(self))
            for number in itertools.count(first):
                yield from self._one_pass(number, skipped)
                skipped = 0

        return _dataset(stream)

    def _deal(self, number):
        """The bucket and the rows of each batch of a pass."""
        rng = np.random.default_rng((self._seed, number))
        plan = [
            (bucket, rows)
            for bucket in self._buckets
            for rows in bucket.deal(rng if self._shuffle else None)
        ]
        if not self._shuffle:
            return plan
        return [plan[place] for place in rng.permutation(len(plan))]

    def _one_pass(self, number, skipped=0):
        """The batches of a pass, without the first ones."""
        plan = self._deal(number)
        for start in range(skipped, len(plan), self._steps_per_update):
            update = plan[start : start + self._steps_per_update]
            yield from self._fill(update, (number, start))

    def _fill(self, update, draw):
        """The batches of one update, whose weights depend on all of them."""
        filled = []
        for place, (bucket, rows) in enumerate(update):
            source_ids, label_ids, real = self._pairs.padded(
                rows,
                bucket.source_length,
                bucket.target_length,
                (*draw, place),
            )
            target_ids = np.full_like(label_ids, self._pad_id)
            target_ids[:, 0] = self._bos_id
            target_ids[:, 1:] = label_ids[:, :-1]
            # Else eos, or bos in an empty row.
            target_ids[~real] = self._pad_id
            inputs = {"source_ids": source_ids, "target_ids": target_ids}
            filled.append((inputs, label_ids, real))
        tokens = sum(int(real.sum()) for _, _, real in filled)
        for inputs, label_ids, real in filled:
            # (R, B/R*T)
            parts = real.reshape(self._num_replicas, -1).astype(np.float32)
            share = parts.sum(axis=1, keepdims=True) / max(tokens, 1)
            weights = parts * share * len(filled) * self._num_replicas
            yield inputs, label_ids, weights.reshape(real.shape)

    def _report(self, room):
        """Logs what the plan comes to."""
        positions = sum(
            bucket.num_batches
            * bucket.num_rows
            * (bucket.source_length + bucket.target_length)
            for bucket in self._buckets
        )
        _logger.info(
            "%d pairs in %d batches of %d shapes, %.1f%% of the positions "
            "padding",
            sum(len(bucket.pairs) for bucket in self._buckets),
            len(self),
            len(self._buckets),
            100 * (1 - room / positions),
        )


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


def _dataset(generator):
    import tensorflow as tf

    ids = tf.TensorSpec((None, None), tf.int32)
    weights = tf.TensorSpec((None, None), tf.float32)
    structure = ({"source_ids": ids, "target_ids": ids}, ids, weights)
    dataset = tf.data.Dataset.from_generator(
        generator, output_signature=structure
    )
    return dataset.prefetch(tf.data.AUTOTUNE)
