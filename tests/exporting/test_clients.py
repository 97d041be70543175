"""The clients to copy work as they stand."""

import pathlib
import subprocess
import sys

import pytest

from keras_transformer import export_ctranslate2

CLIENTS = pathlib.Path(__file__).parents[2] / "export" / "runtimes"
LINES = ["ab cd", "", "ef", "gh ab ef cd gh", "\u2028", "a b"]


@pytest.mark.parametrize(
    "client, name",
    [
        ("python_onnxruntime.py", "onnx"),
        ("python_extensions.py", "onnx"),
        ("python_litert.py", "litert"),
        ("python_openvino.py", "onnx"),
        ("python_tensorflow.py", "saved_model"),
    ],
)
def test_client_gives_a_line_for_a_line_as_the_translator(
    client, name, exported, translator, tmp_path
):
    done = subprocess.run(
        [
            *(sys.executable, str(CLIENTS / client), str(exported[name])),
            *("--batch-size", "4", "--beam-size", "3"),
        ],
        input="\n".join(LINES).encode(),
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    expected = translator.translate(LINES, beam_size=3)
    lines = done.stdout.decode().split("\n")
    assert lines == [line.replace("\n", " ") for line in expected] + [""]


def test_client_of_ctranslate2_gives_what_it_can(translator, tmp_path):
    """Its rule of stopping and its penalty are those of two options here."""
    folder = tmp_path / "exported"
    export_ctranslate2(translator, folder, sentences=["one"])
    done = subprocess.run(
        [sys.executable, CLIENTS / "python_ctranslate2.py", folder],
        input="\n".join(LINES).encode(),
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    options = {"length_penalty_form": 1, "early_stopping": 1}
    longest = max(map(len, translator.source_tokenizer.tokenize(LINES)))
    expected = translator.translate(LINES, max_length=longest + 51, **options)
    lines = done.stdout.decode().split("\n")
    assert lines == [line.replace("\n", " ") for line in expected] + [""]
