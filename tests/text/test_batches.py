import logging
import types

import numpy as np
import pytest

from keras_transformer.text import (
    BatchPlan,
    ParallelCorpus,
    Tokenizer,
    batches,
)

PAD, BOS, EOS = 5, 7, 3


class Letters:
    """Stands in for a tokenizer: a letter is its number in the alphabet."""

    pad_id, bos_id, eos_id = PAD, BOS, EOS

    def tokenize(self, texts):
        return [[ord(letter) - ord("a") + 10 for letter in t] for t in texts]


def ids(text):
    return Letters().tokenize([text])[0]


def make_corpus(count, longest=19, seed=0):
    """Pairs of random lengths, about as long on either side, all different."""
    rng = np.random.default_rng(seed)
    pairs = set()
    while len(pairs) < count:
        length = int(rng.integers(1, longest - 2))
        sides = [
            "".join(map(chr, rng.integers(ord("a"), ord("z"), size)))
            for size in (length, length + int(rng.integers(0, 3)))
        ]
        pairs.add(tuple(sides))
    source, target = zip(*sorted(pairs), strict=True)
    return ParallelCorpus(source, target)


def passes(dataset, count=1):
    """Epochs as lists of batches (source, target, labels, weights)."""
    return [
        [
            (x["source_ids"], x["target_ids"], labels, weights)
            for x, labels, weights in dataset.as_numpy_iterator()
        ]
        for _ in range(count)
    ]


def pairs_of(epoch):
    """The pairs of an epoch in order, as tuples of ids without padding."""
    return [
        (tuple(row[row != PAD]), tuple(label[label != PAD]))
        for source, _, labels, _ in epoch
        for row, label in zip(source, labels, strict=True)
        if (label != PAD).any()
    ]


def test_source_target_and_labels_are_framed():
    corpus = ParallelCorpus(["ab", "c"], ["d", "efg"])
    dataset = batches(corpus, Letters(), batch_tokens=8, shuffle=False)
    [[(source, target, labels, weights)]] = passes(dataset)
    a = ids("abcdefg")
    assert source.tolist() == [[*a[0:2], EOS], [a[2], EOS, PAD]]
    assert target.tolist() == [[BOS, a[3], PAD, PAD], [BOS, *a[4:7]]]
    assert labels.tolist() == [[a[3], EOS, PAD, PAD], [*a[4:7], EOS]]
    assert weights.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    dtypes = [part.dtype.name for part in (source, target, labels, weights)]
    assert dtypes == ["int32", "int32", "int32", "float32"]


def test_bos_is_never_a_label_and_eos_ends_each_row_once():
    lines = ["low lower </s> <s>", "new newer", "newest low"] * 5
    tokenizer = Tokenizer.train_from_lines(lines, 275)
    corpus = ParallelCorpus(lines, lines[::-1])
    [epoch] = passes(batches(corpus, tokenizer, batch_tokens=101))
    for source, target, labels, weights in epoch:
        assert not (labels == tokenizer.bos_id).any()
        assert not (target == tokenizer.eos_id).any()
        real = (labels != tokenizer.pad_id).any(axis=1)
        np.testing.assert_array_equal(
            (labels == tokenizer.eos_id).sum(axis=1), real
        )
        np.testing.assert_array_equal(
            (source == tokenizer.eos_id).sum(axis=1), real
        )
        np.testing.assert_array_equal(
            (target == tokenizer.bos_id).sum(axis=1), real
        )
        np.testing.assert_array_equal(weights > 0, labels != tokenizer.pad_id)


def test_each_language_may_have_its_own_tokenizer():
    others = types.SimpleNamespace(
        pad_id=0, bos_id=1, eos_id=2, tokenize=Letters().tokenize
    )
    corpus = ParallelCorpus(["ab", "c"], ["d", "efg"])
    dataset = batches(corpus, Letters(), others, shuffle=False)
    [[(source, target, labels, _)]] = passes(dataset)
    assert source.tolist()[1] == [*ids("c"), EOS, PAD]
    assert target.tolist()[0] == [1, *ids("d"), 0, 0]
    assert labels.tolist()[0] == [*ids("d"), 2, 0, 0]


@pytest.mark.parametrize("steps_per_update, num_replicas", [(1, 1), (5, 3)])
def test_every_pair_comes_once_an_epoch(steps_per_update, num_replicas):
    corpus = make_corpus(499)
    dataset = batches(
        corpus,
        Letters(),
        batch_tokens=97,
        steps_per_update=steps_per_update,
        num_replicas=num_replicas,
    )
    expected = sorted(
        ((*ids(source), EOS), (*ids(target), EOS)) for source, target in corpus
    )
    for epoch in passes(dataset, 2):
        assert sorted(pairs_of(epoch)) == expected
        assert len(epoch) == int(dataset.cardinality())
        assert len(epoch) % steps_per_update == 0
        assert all(len(batch[0]) % num_replicas == 0 for batch in epoch)


def test_the_seed_and_the_number_of_the_pass_set_the_order():
    corpus = make_corpus(199)

    def orders(seed):
        dataset = batches(corpus, Letters(), batch_tokens=97, seed=seed)
        return [pairs_of(epoch) for epoch in passes(dataset, 3)]

    first, again, other = orders(3), orders(3), orders(4)
    assert first == again
    different = [*first, *other]
    assert len({tuple(order) for order in different}) == len(different)


def test_batches_do_not_come_in_order_of_length_unless_asked():
    corpus = make_corpus(499)
    [epoch] = passes(batches(corpus, Letters(), batch_tokens=97))
    widths = [labels.shape[1] for _, _, labels, _ in epoch]
    assert widths != sorted(widths)
    dataset = batches(corpus, Letters(), batch_tokens=97, shuffle=False)
    epochs = passes(dataset, 2)
    widths = [labels.shape[1] for _, _, labels, _ in epochs[0]]
    assert widths == sorted(widths)
    assert pairs_of(epochs[0]) == pairs_of(epochs[1])


@pytest.mark.parametrize("num_buckets", [1, 2, 7])
@pytest.mark.parametrize("batch_tokens", [23, 101, 1009])
def test_shapes_are_few_and_keep_the_budget(num_buckets, batch_tokens):
    corpus = make_corpus(499)
    dataset = batches(
        corpus,
        Letters(),
        batch_tokens=batch_tokens,
        num_buckets=num_buckets,
        max_length=23,
    )
    [epoch] = passes(dataset)
    shapes = {(*source.shape, *labels.shape) for source, _, labels, _ in epoch}
    assert 1 <= len(shapes) <= num_buckets
    for source, _, labels, _ in epoch:
        assert source.size <= batch_tokens
        assert labels.size <= batch_tokens


def test_every_batch_carries_a_fair_share_of_the_budget():
    [epoch] = passes(batches(make_corpus(997), Letters(), batch_tokens=211))
    assert len(epoch) > 40
    for _, _, _, weights in epoch:
        assert weights.sum() > 211 / 2


def test_more_buckets_mean_less_padding(caplog):
    corpus = make_corpus(997)
    shares = []
    for num_buckets in (1, 3, 9):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            dataset = batches(
                corpus, Letters(), batch_tokens=211, num_buckets=num_buckets
            )
        [record] = caplog.records
        [epoch] = passes(dataset)
        padding = sum(
            (part == PAD).sum() for batch in epoch for part in batch[::2]
        )
        positions = sum(part.size for batch in epoch for part in batch[::2])
        share = 100 * padding / positions
        assert f"997 pairs in {len(epoch)} batches" in record.message
        assert f"{share:.1f}% of the positions padding" in record.message
        shares.append(share)
    assert shares[0] > 40
    assert shares[1] < 0.6 * shares[0]
    assert shares[2] < 0.6 * shares[1]


def keras_mean(updates, losses, num_replicas):
    """What Keras makes of it: means of micro-batches, means of replicas."""
    means = []
    for labels, weights, loss in zip(*updates, losses, strict=True):
        parts = zip(
            np.split(labels, num_replicas),
            np.split(weights, num_replicas),
            np.split(loss, num_replicas),
            strict=True,
        )
        means += [
            (part_loss * part_weights).sum()
            / max((part_labels != PAD).sum(), 1)
            for part_labels, part_weights, part_loss in parts
        ]
    return np.mean(means)


@pytest.mark.parametrize(
    "steps_per_update, num_replicas", [(1, 1), (3, 1), (1, 2), (3, 2), (19, 5)]
)
def test_weights_make_the_mean_over_the_tokens_of_the_update(
    steps_per_update, num_replicas
):
    dataset = batches(
        make_corpus(211),
        Letters(),
        batch_tokens=131,
        steps_per_update=steps_per_update,
        num_replicas=num_replicas,
    )
    [epoch] = passes(dataset)
    assert len(epoch) % steps_per_update == 0
    rng = np.random.default_rng(0)
    naive_differs = False
    for start in range(0, len(epoch), steps_per_update):
        update = epoch[start : start + steps_per_update]
        labels = [batch[2] for batch in update]
        losses = [rng.uniform(1, 9, part.shape) for part in labels]
        real = np.concatenate(
            [
                loss[part != PAD]
                for loss, part in zip(losses, labels, strict=True)
            ]
        )
        weights = [batch[3] for batch in update]
        mean = keras_mean((labels, weights), losses, num_replicas)
        np.testing.assert_allclose(mean, real.mean(), rtol=1e-6)
        flat = [(part != PAD).astype(float) for part in labels]
        naive = keras_mean((labels, flat), losses, num_replicas)
        naive_differs |= abs(naive - real.mean()) > 1e-3
    assert naive_differs == (steps_per_update * num_replicas > 1)


def test_a_batch_without_pairs_weighs_nothing():
    dataset = batches(
        ParallelCorpus(["a"], ["b"]), Letters(), steps_per_update=3
    )
    [epoch] = passes(dataset)
    sums = sorted(float(weights.sum()) for _, _, _, weights in epoch)
    assert sums == [0, 0, 6]
    empty = [batch for batch in epoch if not batch[3].any()]
    for part in (part for batch in empty for part in batch[:3]):
        assert (part == PAD).all()


def test_pairs_too_long_are_left_out_and_counted(caplog):
    corpus = ParallelCorpus(["aaaa", "a", "b", "c"], ["b", "bbbb", "d", "eee"])
    with caplog.at_level(logging.WARNING):
        [epoch] = passes(batches(corpus, Letters(), max_length=4))
    assert len(pairs_of(epoch)) == 2
    message = "2 of 4 pairs are longer than max_length=4 and are left out"
    assert [record.message for record in caplog.records] == [message]
    with pytest.raises(ValueError, match="max_length=1 leaves none of the 4"):
        batches(corpus, Letters(), max_length=1)


def test_a_budget_below_the_longest_pair_is_refused():
    corpus = ParallelCorpus(["a", "bcdefg"], ["a", "b"])
    batches(corpus, Letters(), batch_tokens=7)
    message = r"batch_tokens=6 is less .*, 7 positions \(1 rows of 7\)"
    with pytest.raises(ValueError, match=message):
        batches(corpus, Letters(), batch_tokens=6)
    message = r"batch_tokens=20 is less .*, 21 positions \(3 rows of 7\)"
    with pytest.raises(ValueError, match=message):
        batches(corpus, Letters(), batch_tokens=20, num_replicas=3)


@pytest.mark.parametrize("name", ["pad_id", "bos_id", "eos_id"])
def test_a_tokenizer_without_a_special_id_is_refused(name):
    lacking = Letters()
    setattr(lacking, name, -1)
    corpus = ParallelCorpus(["a"], ["b"])
    message = f"target_tokenizer: batches need its {name}, .* is -1"
    with pytest.raises(ValueError, match=message):
        batches(corpus, Letters(), lacking)
    if name == "bos_id":
        assert len(passes(batches(corpus, lacking, Letters()))[0]) == 1
    else:
        with pytest.raises(ValueError, match=f"source_tokenizer: .*{name}"):
            batches(corpus, lacking, Letters())


@pytest.mark.parametrize(
    "options, message",
    [
        ({"batch_tokens": 0}, "batch_tokens: expected 1 or more, got 0"),
        ({"max_length": -1}, "max_length: expected 1 or more, got -1"),
        ({"num_buckets": 0}, "num_buckets: expected 1 or more, got 0"),
        ({"steps_per_update": 0}, "steps_per_update: expected 1 or more"),
        ({"num_replicas": 0}, "num_replicas: expected 1 or more, got 0"),
        ({"seed": -3}, "seed: expected 0 or more, got -3"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        batches(ParallelCorpus(["a"], ["b"]), Letters(), **options)


def stream(plan, start, count):
    dataset = plan.endless(start).take(count)
    return [
        (x["source_ids"], x["target_ids"], labels, weights)
        for x, labels, weights in dataset.as_numpy_iterator()
    ]


def equal(some, others):
    return len(some) == len(others) and all(
        np.array_equal(one, other)
        for batch, other_batch in zip(some, others, strict=True)
        for one, other in zip(batch, other_batch, strict=True)
    )


@pytest.mark.parametrize("steps_per_update", [1, 3])
def test_an_endless_dataset_may_begin_at_any_update(steps_per_update):
    plan = BatchPlan(
        make_corpus(97),
        Letters(),
        batch_tokens=97,
        steps_per_update=steps_per_update,
    )
    count = 2 * len(plan) + 3
    whole = stream(plan, 0, count)
    assert len(whole) == count
    for start in range(0, count, steps_per_update):
        assert equal(stream(plan, start, count - start), whole[start:])
    one_by_one = [
        b for e in passes(plan.one_pass_after_another(), 2) for b in e
    ]
    assert equal(one_by_one, whole[: 2 * len(plan)])


def test_each_iteration_of_an_endless_dataset_begins_anew():
    dataset = BatchPlan(make_corpus(31), Letters()).endless(1).take(3)
    first, second = passes(dataset, 2)
    assert equal(first, second)


@pytest.mark.parametrize(
    "start, message",
    [
        (-1, "start: expected 0 or more, got -1"),
        (4, "start: expected a multiple of steps_per_update=3, got 4"),
    ],
)
def test_a_start_within_an_update_is_refused(start, message):
    plan = BatchPlan(make_corpus(31), Letters(), steps_per_update=3)
    with pytest.raises(ValueError, match=message):
        plan.endless(start)


def test_a_batch_can_be_described():
    corpus = make_corpus(97)
    plan = BatchPlan(corpus, Letters(), batch_tokens=97)
    number = len(plan) + 2
    ((source, target, labels, _),) = stream(plan, number, 1)
    text = plan.describe(number)
    rows, length = source.shape
    assert text.startswith(
        f"{rows} rows of {length} source and {target.shape[1]} target ids, "
        "the pairs "
    )
    first = int(text.partition("the pairs ")[2].partition(",")[0])
    assert [*ids(corpus.source[first - 1]), EOS] == [
        token_id for token_id in source[0] if token_id != PAD
    ]
    assert plan.tokens_per_batch == pytest.approx(
        sum(len(line) + 1 for line in corpus.target) / len(plan)
    )


def test_bpe_dropout_gives_other_pieces_of_the_same_pairs():
    lines = ["low lower lowest newest", "wide wider owl", "new low"] * 9
    corpus = ParallelCorpus(
        [f"{line} {n}" for n, line in enumerate(lines)], lines[::-1]
    )
    tokenizer = Tokenizer.train_from_lines(
        [*corpus.source, *corpus.target], 300
    )
    options = {"batch_tokens": 211, "num_buckets": 3, "num_replicas": 2}
    plan = BatchPlan(corpus, tokenizer, bpe_dropout=0.3, **options)
    pads = (0, 1, 2)
    expected = sorted(zip(corpus.source, corpus.target, strict=True))
    for number in range(3):
        pairs = []
        for source, _, labels, weights in stream(
            plan, number * len(plan), len(plan)
        ):
            assert (weights > 0).tolist() == (
                labels != tokenizer.pad_id
            ).tolist()
            texts = [
                tokenizer.detokenize([i for i in row if i not in pads])
                for row in [*source.tolist(), *labels.tolist()]
            ]
            half = len(texts) // 2
            pairs += zip(texts[:half], texts[half:], strict=True)
        assert sorted(pair for pair in pairs if any(pair)) == expected
    first, second = (stream(plan, start, len(plan)) for start in (0, len(plan)))
    assert sorted(b[0].shape for b in first) == sorted(
        b[0].shape for b in second
    )
    count = [sum(int((b[2] != 0).sum()) for b in e) for e in (first, second)]
    plain = stream(BatchPlan(corpus, tokenizer, **options), 0, 99)
    assert count[0] != count[1]
    assert min(count) > sum(int((b[2] != 0).sum()) for b in plain[: len(plan)])
