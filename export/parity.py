"""Runs the exports of a run where this package is not installed.

python -m export.parity RUN

It exports RUN, makes one environment with TensorFlow (and tensorflow-text)
alone and one with ONNX Runtime and NumPy alone, and decodes up to 100 lines
in each: in batches of 1, 7 and 32, shuffled and padded more than they need,
with the defaults, with each option by itself and with all of them. It counts
the sentences whose token ids are always those of the Translator, and whose
scores differ by less than 1e-4 (beyond 10 by 1e-5 of them). The last line of
output is JSON: {"equal": {RUNTIME: {SIGNATURE: n}}, "of": 100}.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import venv

from keras_transformer import Translator, export_onnx, export_saved_model
from keras_transformer.decoding.signatures import (
    SIGNATURES,
    TOKEN_SIGNATURES,
)
from keras_transformer.exporting.parity import check_parity, example_sentences
from keras_transformer.text import read_lines

# Runtime: what its environment holds, how its export is made and read.
RUNTIMES = {
    "tensorflow": {
        "packages": ["tensorflow-text>=2.21,<3"],
        "export": export_saved_model,
        "runner": "saved_model",
        "signatures": tuple(SIGNATURES),
    },
    "onnxruntime": {
        "packages": ["onnxruntime>=1.32,<2", "numpy"],
        "export": export_onnx,
        "runner": "onnx",
        "signatures": TOKEN_SIGNATURES,
    },
}
COUNT = 100


def environment(folder, packages):
    """Makes a virtual environment once, and gives its interpreter."""
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        print(f"installing {' '.join(packages)} into {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", *packages], check=True
        )
        ready.touch()
    missing = subprocess.run(
        [python, "-c", "import keras_transformer"], capture_output=True, cwd="/"
    )
    if missing.returncode == 0:
        raise RuntimeError(f"{folder} must not hold keras_transformer")
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="folder that Translator.save wrote")
    parser.add_argument(
        "--lines", help="file of source lines; by default those of the run"
    )
    parser.add_argument("--environments", default=".venvs")
    arguments = parser.parse_args()

    translator = Translator.load(arguments.run)
    sentences = example_sentences(translator, COUNT)
    if arguments.lines:
        lines = [line for line in read_lines(arguments.lines) if line.strip()]
        sentences = list(dict.fromkeys(lines))[:COUNT]
    texts = translator.translate(sentences)
    lengths = [len(ids) for ids in translator.target_tokenizer.tokenize(texts)]
    print(
        f"{len(sentences)} sentences, {len(set(texts))} distinct outputs, "
        f"{sum(lengths) / len(lengths):.1f} pieces on average"
    )
    equal = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, runtime in RUNTIMES.items():
            python = environment(
                pathlib.Path(arguments.environments).absolute() / name,
                runtime["packages"],
            )
            folder = pathlib.Path(scratch) / name
            runtime["export"](translator, folder)
            report = check_parity(
                translator,
                folder,
                runtime["runner"],
                runtime["signatures"],
                sentences,
                batch_sizes=(1, 7, 32),
                every_option=True,
                python=python,
            )
            equal[name] = {s: r["equal"] for s, r in report.items()}
            for signature, figures in report.items():
                print(
                    f"{name:12} {signature:10} {figures['equal']:4} of "
                    f"{figures['of']} equal, scores within "
                    f"{figures['difference']:.1e}"
                )
    print(json.dumps({"equal": equal, "of": len(sentences)}))
    counts = [n for counts in equal.values() for n in counts.values()]
    sys.exit(min(counts) < len(sentences))


if __name__ == "__main__":
    main()
