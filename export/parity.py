"""Runs the exports of a run where this package is not installed.

python -m export.parity RUN

It exports RUN and asks each runtime: TensorFlow (and tensorflow-text) alone,
ONNX Runtime and NumPy alone, these and onnxruntime-extensions ("extensions"),
OpenVINO and NumPy alone, LiteRT and NumPy alone, CTranslate2 and SentencePiece
alone, each in an environment made for it; Node and Chromium with the packages
that npm puts into export/runtimes/javascript, left out where these are not
installed. Each decodes up to 100 lines in batches of 1, 7 and 32, shuffled and
padded more than they need: with the defaults, with each option by itself and
with all of them; CTranslate2 as it can be asked. It counts the sentences whose
token ids are always those of the Translator, and whose scores differ by less
than 1e-4 (beyond 10 by 1e-5 of them), and says why a runtime is not asked for a
signature. The last line of output is JSON:
{"equal": {RUNTIME: {SIGNATURE: n}}, "of": 100}.
"""

import argparse
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

from export.to_page import CLIENTS, make_page
from keras_transformer import Translator
from keras_transformer.decoding.signatures import (
    SIGNATURES,
    TOKEN_SIGNATURES,
)
from keras_transformer.exporting import FORMATS
from keras_transformer.exporting.parity.check import (
    compare,
    example_sentences,
)
from keras_transformer.exporting.parity.questions import (
    Questioner,
    questions_for,
)
from keras_transformer.exporting.parity.runners import RUNNERS, Runner
from keras_transformer.text import read_lines

HERE = pathlib.Path(__file__).parent
ONNX = RUNNERS["onnx"]
# The runners of the package, with and without the extensions of ONNX Runtime,
# and two programs of Node.
RUNTIMES = {
    "tensorflow": RUNNERS["saved_model"],
    "onnxruntime": ONNX._replace(
        not_asked={"translate": "its operators are those of extensions"},
        cuts_at_nul=False,
    ),
    "extensions": ONNX._replace(
        not_asked=dict.fromkeys(TOKEN_SIGNATURES, "asked of onnxruntime"),
        packages=(*ONNX.packages, "onnxruntime-extensions>=0.15,<1"),
    ),
    "node": Runner("node", ("node", HERE / "parity_node.mjs"), "onnx"),
    "browser": Runner("browser", ("node", HERE / "parity_browser.mjs"), "page"),
    **{
        name: runner
        for name, runner in RUNNERS.items()
        if name not in ("saved_model", "onnx")
    },
}
COUNT = 100


def missing(name):
    """Says why a runtime cannot be asked here, or gives None."""
    if RUNTIMES[name].command[0] != "node":
        return None
    if not shutil.which("node"):
        return "Node is not installed"
    if not (CLIENTS / "node_modules").exists():
        return f"`npm install --ignore-scripts` was not run in {CLIENTS}"
    chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if name == "browser" and not pathlib.Path(chromium).exists():
        return f"{chromium} is not installed (or set CHROMIUM)"
    return None


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
    there = subprocess.run(
        [python, "-c", "import keras_transformer"], capture_output=True, cwd="/"
    )
    if there.returncode == 0:
        raise RuntimeError(f"{folder} must not hold keras_transformer")
    return python


class Exports:
    """The exports of a translator, each made when it is first asked for."""

    def __init__(self, translator, folder):
        self.translator = translator
        self.folder = pathlib.Path(folder)

    def __getitem__(self, name):
        folder = self.folder / name
        if not folder.exists():
            print(f"exporting as {name}", flush=True)
            if name == "page":
                make_page(self["onnx"], folder)
            else:
                FORMATS[name].export(self.translator, folder)
        return folder


def ask(name, exports, questioner_of, sentences, environments):
    """Gives what `check_parity` says of a runtime."""
    runner = RUNTIMES[name]
    if runner.packages:
        python = environment(environments / name, runner.packages)
        runner = runner._replace(command=(python, *runner.command[1:]))
    return compare(
        questioner_of(tuple(runner.askable(exports.translator, sentences))),
        exports[runner.reads],
        runner,
        runner.questions or questions_for(runner.signatures, every_option=True),
        batch_sizes=(1, 7, 32),
    )


def table(equal, skipped):
    """A line for each runtime, a column for each signature; then reasons."""
    lines = [("runtime", *SIGNATURES)]
    for name, counts in equal.items():
        cells = [str(counts.get(signature, "-")) for signature in SIGNATURES]
        lines.append((name, *cells))
    text = ["".join(f"{cell:>12}" for cell in line) for line in lines]
    text += [f"{name:>12}  {why}" for name, why in skipped.items()]
    for name in equal:
        for signature, why in RUNTIMES[name].not_asked.items():
            text.append(f"{name:>12}  not asked for {signature}: {why}")
    return "\n".join(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="folder that Translator.save wrote")
    parser.add_argument(
        "--lines", help="file of source lines; by default those of the run"
    )
    parser.add_argument(
        "--runtimes", nargs="+", choices=RUNTIMES, default=tuple(RUNTIMES)
    )
    parser.add_argument("--environments", default=".venvs")
    arguments = parser.parse_args()

    translator = Translator.load(arguments.run)
    lines = example_sentences(translator, COUNT)
    if arguments.lines:
        lines = read_lines(arguments.lines)
    sentences = [line for line in dict.fromkeys(lines) if line.strip()][:COUNT]
    texts = translator.translate(sentences)
    lengths = [len(ids) for ids in translator.target_tokenizer.tokenize(texts)]
    print(
        f"{len(sentences)} sentences, {len(set(texts))} distinct outputs, "
        f"{sum(lengths) / len(lengths):.1f} pieces on average"
    )
    equal, skipped = {}, {}
    environments = pathlib.Path(arguments.environments).absolute()
    with tempfile.TemporaryDirectory() as scratch:
        exports = Exports(translator, scratch)
        # What the Translator answers is the same for all runtimes.
        questioner_of = functools.cache(
            functools.partial(Questioner, translator)
        )
        for name in arguments.runtimes:
            if why := missing(name):
                skipped[name] = why
                continue
            report = ask(name, exports, questioner_of, sentences, environments)
            equal[name] = {s: r["equal"] for s, r in report.items()}
            largest = max(r["difference"] for r in report.values())
            print(f"{name}: scores within {largest:.1e}", flush=True)
    print(table(equal, skipped))
    print(json.dumps({"equal": equal, "of": len(sentences)}))
    counts = [n for counts in equal.values() for n in counts.values()]
    sys.exit(not counts or min(counts) < len(sentences))


if __name__ == "__main__":
    main()
