"""How decoding grows: `python benchmarks/growth.py --source FILE --plot OUT`.

Milliseconds a token as outputs become longer (16 to 256 ids), batches larger
(1 to 128 sentences) and beams wider (1 to 16), of the model "tiny" of
`decode.py` and with outputs of fixed length; ONNX Runtime and TensorFlow beside
CTranslate2, in turn, two threads each. Then how near ONNX Runtime comes to what
the machine can do: at batch 1, greedy, the weights that a token reads beside
what the machine reads in that time; at batch 32, beam 4, the products of a
token beside the arithmetic of one large product. The last line of output is
JSON.
"""

import argparse
import json
import pathlib
import statistics
import tempfile

import numpy as np
from decode import Case, make_model, random_sources
from decode_engines import THREADS, make_engine
from turns import Engines, timed

ENGINES = ("onnxruntime float32", "tensorflow float32", "ctranslate2 float32")
# What grows, and what the others are meanwhile.
AXES = {
    "length": ([16, 32, 64, 128, 256], {"batch": 1, "beam": 4}),
    "batch": ([1, 2, 4, 8, 16, 32, 64, 128], {"length": 32, "beam": 4}),
    "beam": ([1, 2, 4, 8, 16], {"length": 32, "batch": 8}),
}
SIZE = "tiny"


def measure(folder, turns):
    """Gives the rows of the table."""
    vocab_size = _sizes(folder)["target_vocab_size"]
    engines = Engines(make_engine, list(ENGINES), folder)
    for axis, (values, others) in AXES.items():
        for value in values:
            at = {**others, axis: value}
            case = Case(
                random_sources(at["batch"], vocab_size),
                at["beam"],
                at["length"],
                True,
            )
            found = engines.take_turns(turns, case, warm_up=1)
            base = [s for _, s in found["ctranslate2 float32"]]
            for name, answers in found.items():
                seconds = [s for _, s in answers]
                yield {
                    "engine": name.split()[0],
                    "precision": "float32",
                    "size": SIZE,
                    "axis": axis,
                    **at,
                    **_speed(seconds, base, at["batch"] * at["length"]),
                }
    engines.close()


def _sizes(folder):
    config = json.loads((folder / "run" / "config.json").read_text("utf-8"))
    return config["transformer"]


def _speed(seconds, base, tokens):
    median = statistics.median(seconds)
    ratio = statistics.median(b / s for s, b in zip(seconds, base, strict=True))
    return {
        "ms_per_token": round(median * 1e3 / tokens, 4),
        "tokens_per_second": round(tokens / median),
        "ratio": round(ratio, 3),
    }


def shares(folder, turns):
    """How near ONNX Runtime comes to memory and arithmetic of the machine."""
    sizes = _sizes(folder)
    vocab_size = sizes["target_vocab_size"]
    width, layers = sizes["d_model"], sizes["num_layers"]
    # Of a decoder layer for one hypothesis: six square projections and the
    # feed-forward network; then the logits.
    weights = layers * (6 * width**2 + 2 * width * sizes["d_ff"])
    weights += width * vocab_size
    engine = "onnxruntime float32"
    engines = Engines(make_engine, [engine], folder)
    length = 64
    result = {}
    for batch, beam in ((1, 1), (32, 4)):
        case = Case(random_sources(batch, vocab_size), beam, length, True)
        # The encoder is left out by the difference of two lengths.
        both = [case, case._replace(length=length // 2)]
        found = []
        for _ in range(turns):
            times = [engines.ask(engine, each)[1] for each in both]
            found.append((times[0] - times[1]) / (length - length // 2))
        step = statistics.median(found)
        if batch == 1:
            speed = weights * 4 / step
            most = _bytes_a_second()
            result["share_of_bandwidth_batch_1"] = round(speed / most, 2)
            result["gigabytes_per_second"] = round(most / 1e9, 1)
        else:
            speed = 2 * weights * batch * beam / step
            most = _flops()
            result["share_of_arithmetic_batch_32"] = round(speed / most, 2)
            result["gigaflops"] = round(most / 1e9)
    engines.close()
    return result


def _bytes_a_second():
    """What a product of a large matrix and a vector reads."""
    matrix = np.ones((16_384, 8_192), "float32")  # 0.5 GB, beyond all caches.
    vector = np.ones(8_192, "float32")
    return matrix.nbytes / min(
        timed(np.dot, matrix, vector)[1] for _ in range(5)
    )


def _flops():
    """What a large product calculates."""
    size = 4_096
    matrix = np.ones((size, size), "float32")
    seconds = min(timed(np.dot, matrix, matrix)[1] for _ in range(5))
    return 2 * size**3 / seconds


def plot(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4), layout="constrained")
    for axes, axis in zip(figure.subplots(1, 3), AXES, strict=True):
        for engine in dict.fromkeys(row["engine"] for row in rows):
            points = [
                (row[axis], row["ms_per_token"])
                for row in rows
                if row["axis"] == axis and row["engine"] == engine
            ]
            axes.plot(*zip(*points, strict=True), "o-", label=engine)
        others = ", ".join(f"{k} {v}" for k, v in AXES[axis][1].items())
        axes.set(xlabel=f"{axis} ({others})", ylabel="milliseconds a token")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True, help="file of sentences")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--models", help="folder that keeps the models")
    parser.add_argument("--plot", help="file for the plot, such as growth.png")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.models or scratch) / SIZE
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            make_model(SIZE, arguments.source, folder)
        rows = []
        for row in measure(folder, arguments.turns):
            print(
                f"{row['axis']:6} {row[row['axis']]:4} {row['engine']:>12} "
                f"{row['ms_per_token']:8} ms/token ratio {row['ratio']}",
                flush=True,
            )
            rows.append(row)
        machine = shares(folder, arguments.turns)
    print(machine)
    if arguments.plot:
        plot(rows, arguments.plot)
    print(json.dumps({"rows": rows, "threads": THREADS, **machine}))


if __name__ == "__main__":
    main()
