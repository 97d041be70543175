"""How fast decoding is: `python benchmarks/decode.py --source FILE`.

The same random weights in ONNX Runtime and TensorFlow (what this project
exports), CTranslate2, KerasHub's samplers compiled by XLA, and Hugging Face's
Marian model, two threads each:

- "fixed": random sources of 25 ids, 30 ids of output, eos forbidden;
- "natural": sentences of FILE, such as test_2016_flickr.en of Multi30k, as long
  as they come; outputs end by themselves or at 50 ids.

Beam search ranks by `length ^ 0.6` and stops at as many ends as beams, but for
KerasHub, which has no length penalty and stops when all beams have ended. Each
engine has a process of its own, and in each turn they run one after the other,
half a second or longer, in an order drawn anew; `ratio` is the median, over the
turns, of tokens a second beside CTranslate2 of the same precision, with its
least and largest. `equal` counts the sentences whose ids are those of
CTranslate2 in float32. The last line of output is JSON.
"""

import argparse
import json
import operator
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

import numpy as np
from decode_engines import EOS_ID, PAD_ID, make_engine
from turns import Engines

ENGINES = (
    "onnxruntime float32",
    "onnxruntime int8",
    "tensorflow float32",
    "ctranslate2 float32",
    "ctranslate2 int8",
    "keras_hub float32",
    "transformers float32",
)
SIZES = ("tiny", "base")
PARTS = ("fixed", "natural")
SOURCE_LENGTH, OUTPUT_LENGTH, LONGEST = 25, 30, 50


class Case(NamedTuple):
    """What every engine is asked.

    source_ids: int32 `(B, S)`.
    beam: int; 1 is greedy.
    length: int, the largest number of ids of an output.
    fixed: bool, whether every output is as long.
    """

    source_ids: np.ndarray
    beam: int
    length: int
    fixed: bool


def random_sources(batch, vocab_size):
    source_ids = np.random.default_rng(batch).integers(
        4, vocab_size, (batch, SOURCE_LENGTH)
    )
    source_ids[:, -1] = EOS_ID
    return source_ids.astype("int32")


def sentences(batch, rows):
    """As many sentences as a batch has, drawn from all."""
    chosen = np.random.default_rng(batch).choice(len(rows), batch, False)
    rows = [[*rows[i], EOS_ID] for i in chosen]
    source_ids = np.full((batch, max(map(len, rows))), PAD_ID, "int32")
    for row, ids in zip(source_ids, rows, strict=True):
        row[: len(ids)] = ids
    return source_ids


def rows_of(size, part, case, answers):
    """The rows of the table, one an engine."""
    expected = answers.get("ctranslate2 float32")
    speeds = {
        name: [
            sum(_length(row, case.length) for row in ids) / seconds
            for ids, seconds in found
        ]
        for name, found in answers.items()
    }
    batch = len(case.source_ids)
    for name, found in answers.items():
        engine, precision = name.split()
        row = {
            "engine": engine,
            "precision": precision,
            "size": size,
            "part": part,
            "batch": batch,
            "beam": case.beam,
            "tokens_per_second": round(statistics.median(speeds[name])),
            "ms_per_sentence": round(
                statistics.median(s for _, s in found) * 1e3 / batch, 2
            ),
        }
        if expected:
            row["equal"] = sum(map(operator.eq, found[0][0], expected[0][0]))
        base = speeds.get(f"ctranslate2 {precision}")
        if base:
            ratios = [a / b for a, b in zip(speeds[name], base, strict=True)]
            row["ratio"] = round(statistics.median(ratios), 3)
            row["spread"] = [round(min(ratios), 3), round(max(ratios), 3)]
        yield row


def _length(ids, longest):
    return min(len(ids) + 1, longest)  # Its eos took a step too.


def show(row):
    least, largest = row.get("spread", ("-", "-"))
    print(
        f"{row['engine']:>12} {row['precision']:8} {row['size']:5}"
        f"{row['part']:8} batch {row['batch']:<3} beam {row['beam']} "
        f"{row['tokens_per_second']:7} tokens/s {row['ms_per_sentence']:8} ms "
        f"ratio {row.get('ratio', '-')} ({least} to {largest}) "
        f"equal {row.get('equal', '-')}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True, help="file of sentences")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=ENGINES
    )
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--beams", nargs="+", type=int, default=[1, 4])
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--models", help="folder that keeps the models for another time"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.models or scratch)
        folder.mkdir(exist_ok=True)
        rows = []
        for size in arguments.sizes:
            if not (folder / size).exists():
                make_model(size, arguments.source, folder / size)
            rows += benchmark(size, folder / size, arguments)
    print(json.dumps({"rows": rows}))


def make_model(size, source, folder):
    """Writes the model, in a process that ends before all others begin."""
    script = pathlib.Path(__file__).with_name("decode_model.py")
    subprocess.run([sys.executable, script, size, source, folder], check=True)


def benchmark(size, folder, arguments):
    """Measures all cases of a size."""
    sources = json.loads((folder / "sources.json").read_text("utf-8"))
    engines = Engines(make_engine, list(arguments.engines), folder)
    rows = []
    for part in arguments.parts:
        for batch in arguments.batches:
            for beam in arguments.beams:
                fixed = part == "fixed"
                case = Case(
                    random_sources(batch, sources["vocab_size"])
                    if fixed
                    else sentences(batch, sources["ids"]),
                    beam,
                    OUTPUT_LENGTH if fixed else LONGEST,
                    fixed,
                )
                found = engines.take_turns(arguments.turns, case, warm_up=2)
                for row in rows_of(size, part, case, found):
                    show(row)
                    rows.append(row)
    memory = engines.close()
    for name, peak in memory.items():
        print(f"{name} {size}: {peak:.2f} GiB at most")
    for row in rows:
        row["peak_gib"] = round(
            memory[f"{row['engine']} {row['precision']}"], 2
        )
    return rows


if __name__ == "__main__":
    main()
