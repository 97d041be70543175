"""The README: its first example runs, its table tells what is exported."""

import itertools
import pathlib
import re

import pytest

from export.parity import RUNTIMES
from keras_transformer.decoding import SIGNATURES
from keras_transformer.exporting import FORMATS

ROOT = pathlib.Path(__file__).parent.parent
README = ROOT / "README.md"
# What its table calls the runtimes, but for their versions.
ROWS = {
    "TensorFlow (tensorflow-text for text)": ["tensorflow"],
    "ONNX Runtime (onnxruntime-extensions for text)": [
        "onnxruntime",
        "extensions",
    ],
    "ONNX Runtime in Node": ["node"],
    "ONNX Runtime in Chromium": ["browser"],
    "OpenVINO": ["openvino"],
    "LiteRT": ["litert"],
    "CTranslate2, as it can be asked": ["ctranslate2"],
}
READS = {
    "SavedModel": {"saved_model"},
    "ONNX": {"onnx", "page"},
    "LiteRT": {"litert"},
    "CTranslate2": {"ctranslate2"},
}
WORDS = "one two three four five six seven eight nine ten".split()


def first_example():
    return re.search(r"```python\n(.*?)```", README.read_text(), re.S)[1]


@pytest.fixture
def corpus_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{first} {second}" for first in WORDS for second in WORDS]
    pathlib.Path("train.en").write_text("\n".join(lines) + "\n")
    pathlib.Path("train.de").write_text("\n".join(lines).upper() + "\n")


def test_the_first_example_trains_saves_and_exports(corpus_files):
    example = first_example()
    # Smaller and without XLA, so that it takes seconds; every call stays.
    for full, small in (
        ("vocab_size=10_000", "vocab_size=300"),
        ("**TINY", "num_layers=1, d_model=8, num_heads=2, d_ff=16"),
        ("epochs=20", "epochs=1"),
        ("jit_compile=True", "jit_compile=False"),
    ):
        assert full in example
        example = example.replace(full, small)
    exec(compile(example, str(README), "exec"), {})
    assert pathlib.Path("runs/mine/config.json").is_file()
    assert pathlib.Path("exports/saved_model/saved_model.pb").is_file()
    assert pathlib.Path("exports/onnx/weights.bin").is_file()


def table_of_runtimes():
    """Cells of each row, without head."""
    text = README.read_text()
    lines = text[text.index("| runtime, alone | reads |") :].split("\n\n")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines.splitlines()
    ]
    assert head[2:] == [*list(SIGNATURES)[:-1], "text to text"]
    return rows


def test_the_table_has_a_row_for_every_runtime():
    names = [re.sub(r" \d+(\.\d+)?", "", row[0]) for row in table_of_runtimes()]
    assert names == list(ROWS)
    assert list(itertools.chain(*ROWS.values())) == list(RUNTIMES)


def test_the_table_says_what_each_reads_and_is_asked():
    for (_, reads, *cells), names in zip(
        table_of_runtimes(), ROWS.values(), strict=True
    ):
        assert {RUNTIMES[name].reads for name in names} <= READS[reads]
        asked = {s for name in names for s in RUNTIMES[name].signatures}
        for signature, cell in zip(SIGNATURES, cells, strict=True):
            assert (cell == "100") == (signature in asked)
    assert {name for names in READS.values() for name in names} == {
        *FORMATS,
        "page",
    }


@pytest.mark.parametrize("file", ["README.md", "export/README.md"])
def test_the_command_that_exports_names_every_format(file):
    assert f"--to {' '.join(FORMATS)}\n" in (ROOT / file).read_text()
