"""The clients to copy, and the scripts that export, work as they stand."""

import json
import pathlib
import subprocess
import sys

import pytest

from export import to_ctranslate2, to_litert, to_onnx, to_saved_model
from keras_transformer import Translator

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
    to_ctranslate2.export_ctranslate2(translator, folder, sentences=["one"])
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


@pytest.mark.parametrize(
    "script, function, arguments",
    [
        (to_onnx, "export_onnx", {"precision": "int8"}),
        (to_saved_model, "export_saved_model", {"text": False}),
        (to_litert, "export_litert", {}),
        (
            to_ctranslate2,
            "export_ctranslate2",
            {"quantization": "int8", "max_positions": 99},
        ),
    ],
)
def test_script_exports_the_run_and_prints_the_report(
    script, function, arguments, translator, tmp_path, monkeypatch, capsys
):
    translator.save(tmp_path / "run")
    calls = []

    def export(loaded, folder, **options):
        calls.append((loaded, folder, options))
        return {"greedy": {"equal": 1, "of": 1}}

    monkeypatch.setattr(script, function, export)
    flags = {
        to_onnx: ["--precision", "int8"],
        to_saved_model: ["--no-text"],
        to_litert: [],
        to_ctranslate2: ["--quantization", "int8", "--max-positions", "99"],
    }[script]
    out = str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "run"), out, *flags])
    script.main()
    ((loaded, folder, options),) = calls
    assert isinstance(loaded, Translator)
    assert (folder, options) == (out, arguments)
    report = json.loads(capsys.readouterr().out)
    assert report == {"greedy": {"equal": 1, "of": 1}}
