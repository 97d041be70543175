import numpy as np

from keras_transformer.text.buckets import plan_buckets


def test_bounds_are_the_best_of_all():
    lengths = np.repeat([2, 3, 4, 11, 12, 13], [7, 5, 3, 2, 9, 4])
    options = {"batch_tokens": 13, "num_buckets": 3}
    buckets = plan_buckets(lengths, lengths, **options)
    steps = sorted(set(lengths.tolist()))

    def positions(bounds):
        places = np.searchsorted(bounds, lengths)
        return np.take(bounds, places).sum()

    best = min(
        positions([first, second, 13])
        for first in steps[:-1]
        for second in steps[:-1]
        if first < second
    )
    assert positions([b.source_length for b in buckets]) == best
    assert sorted(np.concatenate([b.pairs for b in buckets])) == list(range(30))


def test_a_bucket_has_enough_for_a_full_batch():
    lengths = np.array([3] * 100 + [50])
    [alone] = plan_buckets(lengths, lengths, batch_tokens=100)
    assert alone.source_length == 50
    lengths = np.array([3] * 100 + [50, 50])
    short, long = plan_buckets(lengths, lengths, batch_tokens=100)
    assert (short.num_rows, short.num_batches) == (25, 4)
    assert (long.num_rows, long.num_batches) == (2, 1)


def test_a_bucket_deals_its_pairs_evenly():
    lengths = np.full(130, 8)
    [bucket] = plan_buckets(lengths, lengths, batch_tokens=1024)
    assert (bucket.num_rows, bucket.num_batches) == (65, 2)
    [bucket] = plan_buckets(lengths, lengths, batch_tokens=1024, row_multiple=3)
    assert (bucket.num_rows, bucket.num_batches) == (66, 2)
    first, second = bucket.deal()
    assert first.tolist() == [*range(0, 130, 2), -1]
    assert second.tolist() == [*range(1, 130, 2), -1]
