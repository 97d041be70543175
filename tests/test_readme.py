"""The first example of the README runs as it stands, on small files."""

import pathlib
import re

import pytest

README = pathlib.Path(__file__).parent.parent / "README.md"
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
