"""How fast training is: `python benchmarks/train.py`.

The same model, batches and loss in four engines: this project and KerasHub's
layers, both in `fit` with `jit_compile=True`, and PyTorch's `nn.Transformer`,
eager and compiled. Real target tokens a second, padding not counted.

Each engine has a process of its own, and in each turn they run one after the
other, in an order drawn anew, so that whatever else the machine does hits them
alike; `ratio` is the median, over the turns, of the speed of this project
beside theirs. Compiling comes before the first turn. The last line of output
is JSON.
"""

import argparse
import json
import statistics

import numpy as np
from turns import Engines, timed

SIZES = {
    "tiny": {
        "vocab_size": 10_000,
        "num_layers": 4,
        "d_model": 128,
        "num_heads": 4,
        "d_ff": 256,
    },
    "small": {
        "vocab_size": 8_000,
        "num_layers": 3,
        "d_model": 256,
        "num_heads": 4,
        "d_ff": 1024,
    },
}
ENGINES = ("keras_transformer", "keras_hub", "torch", "torch.compile")
DROPOUT = 0.1
LABEL_SMOOTHING = 0.1
BATCH_TOKENS = 2048
NUM_SHAPES = 4
NUM_BATCHES = 12
LEARNING_RATE = 1e-4
PAD_ID = 0


def make_batches(vocab_size):
    """Batches of sentences as long as those of Multi30k, of random pieces."""
    from keras_transformer import ParallelCorpus, batches

    class Numbers:
        """Stands in for a tokenizer: text is written as ids."""

        pad_id, bos_id, eos_id = PAD_ID, 1, 2

        def tokenize(self, texts):
            return [[int(word) for word in text.split()] for text in texts]

    rng = np.random.default_rng(7)
    lengths = np.clip(rng.normal(14, 4, 4_000).round(), 4, 40).astype(int)

    def lines():
        return [
            " ".join(map(str, rng.integers(4, vocab_size, length)))
            for length in lengths
        ]

    dataset = batches(
        ParallelCorpus(lines(), lines()),
        Numbers(),
        batch_tokens=BATCH_TOKENS,
        num_buckets=NUM_SHAPES,
    )
    return list(dataset.take(NUM_BATCHES).as_numpy_iterator())


def keras_epoch(model, batches):
    """A function that trains on every batch once, in `fit`."""
    import keras
    import tensorflow as tf

    from keras_transformer import MaskedCrossEntropy

    model.compile(
        keras.optimizers.Adam(LEARNING_RATE, 0.9, 0.98, 1e-9),
        MaskedCrossEntropy(label_smoothing=LABEL_SMOOTHING),
        jit_compile=True,
    )
    (inputs, labels, weights) = batches[0]
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(batches),
        output_signature=tf.nest.map_structure(
            lambda array: tf.TensorSpec([None] * array.ndim, array.dtype),
            (inputs, labels, weights),
        ),
    )
    dataset = dataset.apply(
        tf.data.experimental.assert_cardinality(len(batches))
    ).cache()
    return lambda: model.fit(dataset, shuffle=False, verbose=0)


def ours(sizes, batches):
    from keras_transformer import Transformer

    model = Transformer(
        sizes["vocab_size"],
        num_layers=sizes["num_layers"],
        d_model=sizes["d_model"],
        num_heads=sizes["num_heads"],
        d_ff=sizes["d_ff"],
        dropout=DROPOUT,
        attention_dropout=DROPOUT,
    )
    return keras_epoch(model, batches)


def keras_hub(sizes, batches):
    import keras
    import keras_hub

    layers = keras_hub.layers
    options = {
        "intermediate_dim": sizes["d_ff"],
        "num_heads": sizes["num_heads"],
        "dropout": DROPOUT,
        "activation": "relu",
        "layer_norm_epsilon": 1e-6,
    }
    embedding = layers.ReversibleEmbedding(
        sizes["vocab_size"], sizes["d_model"], tie_weights=True
    )
    positions = layers.SinePositionEncoding()

    def embed(ids):
        vectors = embedding(ids) * sizes["d_model"] ** 0.5
        return keras.layers.Dropout(DROPOUT)(vectors + positions(vectors))

    source_ids = keras.Input((None,), dtype="int32", name="source_ids")
    target_ids = keras.Input((None,), dtype="int32", name="target_ids")
    source_mask = keras.ops.not_equal(source_ids, PAD_ID)
    target_mask = keras.ops.not_equal(target_ids, PAD_ID)
    memory = embed(source_ids)
    for _ in range(sizes["num_layers"]):
        memory = layers.TransformerEncoder(**options)(
            memory, padding_mask=source_mask
        )
    outputs = embed(target_ids)
    for _ in range(sizes["num_layers"]):
        outputs = layers.TransformerDecoder(**options)(
            outputs,
            memory,
            decoder_padding_mask=target_mask,
            encoder_padding_mask=source_mask,
        )
    model = keras.Model(
        {"source_ids": source_ids, "target_ids": target_ids},
        embedding(outputs, reverse=True),
    )
    return keras_epoch(model, batches)


def torch(sizes, batches, compiled=False):
    import torch

    width = sizes["d_model"]
    embedding = torch.nn.Embedding(sizes["vocab_size"], width)
    torch.nn.init.normal_(embedding.weight, std=width**-0.5)
    transformer = torch.nn.Transformer(
        width,
        sizes["num_heads"],
        sizes["num_layers"],
        sizes["num_layers"],
        sizes["d_ff"],
        DROPOUT,
        batch_first=True,
        layer_norm_eps=1e-6,
    )
    dropout = torch.nn.Dropout(DROPOUT)
    rates = 10_000 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(64)[:, None] * rates
    positions = torch.stack([angles.sin(), angles.cos()], -1).reshape(64, width)
    optimizer = torch.optim.Adam(
        [*embedding.parameters(), *transformer.parameters()],
        LEARNING_RATE,
        (0.9, 0.98),
        1e-9,
    )

    def embed(ids):
        vectors = embedding(ids) * width**0.5
        return dropout(vectors + positions[: ids.shape[1]])

    def loss(source, target, labels):
        source_pad = source == PAD_ID
        causal = torch.nn.Transformer.generate_square_subsequent_mask(
            target.shape[1], dtype=torch.bool
        )
        outputs = transformer(
            embed(source),
            embed(target),
            tgt_mask=causal,
            src_key_padding_mask=source_pad,
            tgt_key_padding_mask=target == PAD_ID,
            memory_key_padding_mask=source_pad,
            tgt_is_causal=True,
        )
        logits = outputs @ embedding.weight.T
        return torch.nn.functional.cross_entropy(
            logits.reshape(-1, sizes["vocab_size"]),
            labels.reshape(-1),
            ignore_index=PAD_ID,
            label_smoothing=LABEL_SMOOTHING,
        )

    if compiled:
        loss = torch.compile(loss, dynamic=False)
    tensors = [
        [
            torch.from_numpy(array).long()
            for array in (x["source_ids"], x["target_ids"], labels)
        ]
        for x, labels, _ in batches
    ]

    def epoch():
        for batch in tensors:
            optimizer.zero_grad()
            loss(*batch).backward()
            optimizer.step()

    return epoch


def make_engine(name, sizes, batches):
    """A function that trains on all batches and gives tokens a second."""
    tokens = sum(int((labels != PAD_ID).sum()) for _, labels, _ in batches)
    epoch = {
        "keras_transformer": ours,
        "keras_hub": keras_hub,
        "torch": torch,
        "torch.compile": lambda *given: torch(*given, compiled=True),
    }[name](sizes, batches)
    for _ in range(2):
        epoch()
    return lambda: tokens / timed(epoch)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=ENGINES
    )
    arguments = parser.parse_args()
    rows = []
    for size in arguments.sizes:
        engines = list(arguments.engines)
        batches = make_batches(SIZES[size]["vocab_size"])
        running = Engines(make_engine, engines, SIZES[size], batches)
        speeds = running.take_turns(arguments.turns)
        memory = running.close()
        for engine in engines:
            ratio = statistics.median(
                ours / theirs
                for ours, theirs in zip(
                    speeds[engines[0]], speeds[engine], strict=True
                )
            )
            row = {
                "engine": engine,
                "precision": "float32",
                "size": size,
                "batch": BATCH_TOKENS,
                "tokens_per_second": round(statistics.median(speeds[engine])),
                "ratio": round(ratio, 3),
                "peak_gib": round(memory[engine], 2),
            }
            rows.append(row)
            print(row, flush=True)
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
