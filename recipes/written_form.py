"""Spoken English to its written form: the model of `make demo`.

python recipes/written_form.py --output runs/written_form

"twenty third of march two thousand and four" becomes "2004-03-23". Lines come
from a seeded grammar (`recipes/spoken_forms.py`), so nothing is downloaded.
The test lines hold what training never shows: whole ranges of numbers, and
whole pairs of templates. The last line of output is JSON with the share of
test lines that come out right to the letter, the lower of greedy and beam.
`--small` makes a model whose folder is under 1 MB: tests/golden/written_form.
"""

import argparse
import json
import logging
import pathlib
import time

import keras

from keras_transformer import (
    MaskedCrossEntropy,
    ParallelCorpus,
    TokenAccuracy,
    Tokenizer,
    Transformer,
    Translator,
    batches,
)
from spoken_forms import generate

PRESETS = {
    "demo": {
        "train_lines": 540_000,
        "vocab_size": 720,
        "d_model": 128,
        "d_ff": 256,
    },
    "small": {
        "train_lines": 180_000,
        "vocab_size": 480,
        "d_model": 48,
        "d_ff": 96,
    },
}
TEST_LINES = 1_000
WARMUP_STEPS = 300


def corpus(seed, count, split):
    spoken, written = zip(*generate(seed, count, split), strict=True)
    return ParallelCorpus(spoken, written)


def train(seed, preset):
    keras.utils.set_random_seed(seed)
    lines = corpus(seed, preset["train_lines"], "train")
    tokenizer = Tokenizer.train_from_lines(
        lines.source[:30_000] + lines.target[:30_000],
        preset["vocab_size"],
        # Each digit is a piece; most spoken words are one too.
        split_digits=True,
    )
    model = Transformer(
        preset["vocab_size"],
        num_layers=2,
        d_model=preset["d_model"],
        num_heads=4,
        d_ff=preset["d_ff"],
        dropout=0.0,  # Lines seldom repeat: nothing is learned by heart.
    )
    dataset = batches(
        lines, tokenizer, batch_tokens=2048, num_buckets=6, seed=seed
    )
    # One pass over the lines, reported in ten parts.
    steps = len(dataset) // 10
    # A short run does best when the rate falls to 0 at its end.
    rate = keras.optimizers.schedules.CosineDecay(
        0.0,
        decay_steps=10 * steps - WARMUP_STEPS,
        warmup_target=0.004,
        warmup_steps=WARMUP_STEPS,
    )
    model.compile(
        optimizer=keras.optimizers.Adam(
            rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9
        ),
        loss=MaskedCrossEntropy(),
        metrics=[TokenAccuracy()],
        jit_compile=True,
    )
    started = time.time()
    model.fit(
        dataset,
        epochs=10,
        steps_per_epoch=steps,
        shuffle=False,  # The batches are shuffled already.
        verbose=2,
    )
    facts = {
        "recipe": "written_form",
        "seed": seed,
        "train_lines": preset["train_lines"],
        "updates": int(model.optimizer.iterations.numpy()),
        "minutes": round((time.time() - started) / 60, 1),
        "examples": corpus(seed, 100, "test").source,
    }
    return Translator(model, tokenizer, training=facts)


def exact_match(translator, test, strategy):
    outputs = translator.translate(test.source, strategy, batch_size=100)
    right = [
        output == written
        for output, written in zip(outputs, test.target, strict=True)
    ]
    return sum(right) / len(right)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="run folder, new")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--small", action="store_true", help="a folder under 1 MB, for tests"
    )
    parser.add_argument("--lines", type=int, help="instead of the preset's")
    arguments = parser.parse_args()
    preset = dict(PRESETS["small" if arguments.small else "demo"])
    preset["train_lines"] = arguments.lines or preset["train_lines"]
    output = pathlib.Path(arguments.output)
    if output.exists():
        parser.error(f"--output {output} exists; expected a new folder")
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    translator = train(arguments.seed, preset)
    translator.save(output)
    print(f"saved {output}, trained {translator.training['minutes']} minutes")

    # Another seed than that of the examples kept with the run.
    test = corpus(arguments.seed + 1, TEST_LINES, "test")
    scores = {
        strategy: exact_match(translator, test, strategy)
        for strategy in ("greedy", "beam")
    }
    print(json.dumps({"exact_match": min(scores.values()), **scores}))


if __name__ == "__main__":
    main()
