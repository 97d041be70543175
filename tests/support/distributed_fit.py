"""Trains on several devices or processes and on one; prints both as JSON.

Run as a script, since devices can only be set up before the first is used:
`mirrored` compares two replicas on two logical CPUs with one device, and
`worker` is one of several processes of the JAX backend.
"""

import json
import sys

import numpy as np

VOCAB_SIZE = 23
PAD, BOS, EOS = 0, 1, 2


def rows_of(lengths, seed=0):
    """Sentence pairs of given target lengths, padded to 7 and 11 ids."""
    rng = np.random.default_rng(seed)
    source = rng.integers(4, VOCAB_SIZE, (len(lengths), 7))
    source[:, -1] = EOS
    labels = np.zeros((len(lengths), 11), int)
    for row, length in enumerate(lengths):
        labels[row, :length] = rng.integers(4, VOCAB_SIZE, length)
    target = np.roll(labels, 1, axis=1)
    target[:, 0] = BOS
    return {"source_ids": source, "target_ids": target}, labels


def build(optimizer):
    import keras

    from keras_transformer import (
        MaskedCrossEntropy,
        TokenAccuracy,
        Transformer,
    )

    keras.utils.set_random_seed(5)
    model = Transformer(
        VOCAB_SIZE, num_layers=1, d_model=14, num_heads=2, d_ff=13, dropout=0.0
    )
    model.compile(
        keras.optimizers.get(optimizer),
        MaskedCrossEntropy(label_smoothing=0.1),
        metrics=[TokenAccuracy()],
        jit_compile=False,
    )
    return model


def result(model, history):
    return {
        "loss": history.history["loss"],
        "weights": [weight.tolist() for weight in model.get_weights()],
    }


def mirrored():
    """Two replicas and one device, on a corpus and on batches by hand."""
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert strategy.num_replicas_in_sync == 2
    found = {}
    for name, data, optimizer in (
        ("corpus", corpus_batches(), {"class_name": "Adam"}),
        ("equal", [by_hand([3, 5, 2, 6])], "sgd"),
        ("unequal", [by_hand([3, 5, 1, 2])], "sgd"),
        ("weighted", [by_hand([3, 5, 1, 2], replicas=2)], "sgd"),
    ):
        for devices in (1, 2):
            if (name, devices) == ("weighted", 1):  # That of "unequal".
                continue
            given = data
            if devices == 1:  # A mean over tokens needs no weights.
                given = [(x, y, (y != PAD) * 1.0) for x, y, _ in data]
                model = build(optimizer)
            else:
                with strategy.scope():
                    model = build(optimizer)
            history = model.fit(
                dataset(given), epochs=2, shuffle=False, verbose=0
            )
            found[f"{name} on {devices}"] = result(model, history)
    print(json.dumps(found))


def by_hand(lengths, replicas=1):
    x, y = rows_of(lengths)
    real = (y != PAD).reshape(replicas, -1) * 1.0
    share = real.sum(axis=1, keepdims=True) / real.sum()
    return x, y, (real * share * replicas).reshape(y.shape)


def corpus_batches():
    """What `batches` makes for two replicas, the last one short."""
    from keras_transformer import ParallelCorpus, batches

    class Letters:
        """Stands in for a tokenizer."""

        pad_id, bos_id, eos_id = PAD, BOS, EOS

        def tokenize(self, texts):
            return [[ord(letter) - ord("a") + 4 for letter in t] for t in texts]

    rng = np.random.default_rng(2)
    lines = [
        "".join(rng.choice(list("abcdefghijklm"), rng.integers(1, 9)))
        for _ in range(31)
    ]
    found = batches(
        ParallelCorpus(lines, lines[::-1]),
        Letters(),
        batch_tokens=97,
        num_buckets=3,
        num_replicas=2,
    ).as_numpy_iterator()
    found = list(found)
    empty_rows = [(labels == PAD).all(axis=1).sum() for _, labels, _ in found]
    assert sum(empty_rows) > 0, "no batch is short"
    return found


def dataset(batches):
    import tensorflow as tf

    def whole():
        yield from batches

    spec = tf.TensorSpec((None, None), tf.int32)
    weights = tf.TensorSpec((None, None), tf.float32)
    return tf.data.Dataset.from_generator(
        whole,
        output_signature=(
            {"source_ids": spec, "target_ids": spec},
            spec,
            weights,
        ),
    ).apply(tf.data.experimental.assert_cardinality(len(batches)))


def worker(address, count, rank):
    """One process of several, which share each batch."""
    import keras

    if count > 1:
        keras.distribution.initialize(address, count, rank)
        keras.distribution.set_distribution(
            keras.distribution.DataParallel(auto_shard_dataset=False)
        )
    x, y = rows_of([3, 5, 2, 6, 11, 1, 4, 9])
    # Two batches of four rows, of which each process has its share.
    share = 4 // count
    mine = np.arange(8).reshape(2, count, share)[:, rank].ravel()
    model = build({"class_name": "Adam"})
    history = model.fit(
        {name: value[mine] for name, value in x.items()},
        y[mine],
        batch_size=share,
        epochs=2,
        shuffle=False,
        verbose=0,
    )
    print(json.dumps(result(model, history)))


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "mirrored":
        mirrored()
    else:
        worker(arguments[0], int(arguments[1]), int(arguments[2]))
