"""How soon a fresh process answers: `python benchmarks/start.py --source FILE`.

Each runtime in a new process that imports what it needs, loads the model of
`decode.py` and generates the first token of one sentence, greedily; the engines
in turn, in an order drawn anew each time. Then what `import keras_transformer`
takes beyond `import keras`. Seconds are medians; `ratio` is beside CTranslate2
of the same precision, above 1 is faster. The last line of output is JSON.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

from decode import ENGINES, SIZES, Case, make_model, random_sources
from decode_engines import make_engine

# What each reads, within the folder of the model.
READS = {
    "onnxruntime float32": ["onnx_float32/greedy.onnx", "onnx_float32/*.bin"],
    "onnxruntime int8": ["onnx_int8/greedy.onnx", "onnx_int8/*.bin"],
    "tensorflow float32": ["saved_model/**/*"],
    "ctranslate2 float32": ["ctranslate2/*"],
    "ctranslate2 int8": ["ctranslate2/*"],
    "keras_hub float32": ["run/*"],
    "transformers float32": ["marian.npz"],
}
BEYOND_KERAS = """
import keras, time
started = time.perf_counter()
import keras_transformer
print(time.perf_counter() - started)
"""


def first_token(name, folder):
    """Loads an engine and lets it generate one token."""
    sources = json.loads((folder / "sources.json").read_text("utf-8"))
    case = Case(random_sources(1, sources["vocab_size"]), 1, 1, True)
    [ids], _ = make_engine(name, folder, least_seconds=0)(case)
    if len(ids) != 1:
        raise RuntimeError(f"{name}: {ids} is not one token")


def seconds_of(command):
    started = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def megabytes(folder, patterns):
    """The size of the files that an engine reads."""
    files = {path for each in patterns for path in folder.glob(each)}
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def measure(folder, size, turns):
    """Starts all engines in turn; gives the rows of the table."""
    seconds = {name: [] for name in ENGINES}
    order = random.Random(0)
    for turn in range(-1, turns):  # The first fills the caches of files.
        for name in order.sample(ENGINES, len(ENGINES)):
            elapsed = seconds_of(
                [sys.executable, __file__, "--first-token", name, folder]
            )
            if turn >= 0:
                seconds[name].append(elapsed)
    for name, found in seconds.items():
        engine, precision = name.split()
        base = seconds[f"ctranslate2 {precision}"]
        ratio = statistics.median(
            b / a for a, b in zip(found, base, strict=True)
        )
        yield {
            "engine": engine,
            "precision": precision,
            "size": size,
            "seconds_to_first_token": round(statistics.median(found), 2),
            "megabytes": round(megabytes(folder, READS[name]), 1),
            "ratio": round(ratio, 2),
        }


def import_seconds(turns):
    """What importing takes beyond Keras."""
    return statistics.median(
        float(
            subprocess.run(
                [sys.executable, "-c", BEYOND_KERAS],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for _ in range(turns)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", help="file of sentences")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--models", help="folder that keeps the models")
    parser.add_argument("--first-token", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first_token:
        name, folder = arguments.first_token
        first_token(name, pathlib.Path(folder))
        return
    if not arguments.source:
        parser.error("--source is needed")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.models or scratch) / arguments.size
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            make_model(arguments.size, arguments.source, folder)
        rows = list(measure(folder, arguments.size, arguments.turns))
    for row in rows:
        print(
            f"{row['engine']:>12} {row['precision']:8} "
            f"{row['seconds_to_first_token']:6} s {row['megabytes']:6} MB "
            f"ratio {row['ratio']}"
        )
    seconds = round(import_seconds(arguments.turns), 3)
    print(f"import keras_transformer beyond keras: {seconds} s")
    print(json.dumps({"rows": rows, "import_seconds_beyond_keras": seconds}))


if __name__ == "__main__":
    main()
