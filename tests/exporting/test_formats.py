"""What is the same for every format, and in the list of them."""

import subprocess
import sys

import pytest

import keras_transformer
from keras_transformer import exporting
from keras_transformer.exporting import FORMATS
from keras_transformer.exporting.parity.runners import RUNNERS
from keras_transformer.folders import verify_checksums


def test_every_format_has_its_function_and_a_runner():
    assert {runner.reads for runner in RUNNERS.values()} == set(FORMATS)
    for name, entry in FORMATS.items():
        assert RUNNERS[name].reads == name
        assert entry.export is getattr(keras_transformer, f"export_{name}")
        assert entry.export is getattr(exporting, f"export_{name}")


@pytest.mark.parametrize("name", ["saved_model", "of_ids", "onnx", "litert"])
def test_an_export_holds_its_checksums(name, exported):
    """That of CTranslate2 is looked at where it is made."""
    verify_checksums(exported[name])
    lines = (exported[name] / "SHA256SUMS").read_text().splitlines()
    files = [file for file in exported[name].rglob("*") if file.is_file()]
    assert len(lines) == len(files) - 1


def test_onnx_is_loaded_by_its_export_alone():
    code = """
import sys
import keras_transformer.exporting
from keras_transformer import cli, export_onnx
try:
    cli.main(["--help"])
except SystemExit:
    pass
ours = "keras_transformer.exporting.onnx"
found = [n for n in sys.modules if f"{n}.".startswith((f"{ours}.", "onnx."))]
sys.exit(", ".join(found) or 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "export a model" in done.stdout
