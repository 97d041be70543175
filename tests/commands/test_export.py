import argparse
import inspect
import json
import sys

import pytest

from keras_transformer import cli
from keras_transformer.commands import export
from keras_transformer.decoding import SIGNATURES
from keras_transformer.exporting import FORMATS, ParityError, frame
from tests.support.command_runs import refusal, tree


@pytest.fixture
def exported(monkeypatch):
    """Replaces the exporters; gives the list of their calls."""
    calls = []

    def exporter(name):
        def record(translator, folder, **options):
            found = (name, translator.training["seed"], str(folder))
            calls.append((*found, options) if options else found)
            return {"beam": {"equal": 20, "of": 20}}

        return record

    for name in FORMATS:
        replace(monkeypatch, name, export=exporter(name))
    return calls


def replace(monkeypatch, name, **fields):
    """Lets a format have other functions."""
    monkeypatch.setitem(FORMATS, name, FORMATS[name]._replace(**fields))


def test_export_calls_each_exporter_and_prints_parity(
    run, tmp_path, capsys, exported
):
    assert cli.main(["export", str(run), str(tmp_path)]) == 0
    folders = {name: f"{tmp_path}/{name}" for name in ("saved_model", "onnx")}
    assert exported == [(name, 7, path) for name, path in folders.items()]
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "format": name,
            "folder": path,
            "parity": {"beam": {"equal": 20, "of": 20}},
        }
        for name, path in folders.items()
    ]


def test_export_takes_formats_once(run, tmp_path, exported):
    code = cli.main(["export", str(run), str(tmp_path), "--to", "onnx", "onnx"])
    assert code == 0
    assert [name for name, *_ in exported] == ["onnx"]


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("onnx", ["--precision", "int8"], {"precision": "int8"}),
        ("saved_model", ["--no-text"], {"text": False}),
        (
            "ctranslate2",
            ["--quantization", "int16", "--max-positions", "99"],
            {"quantization": "int16", "max_positions": 99},
        ),
    ],
)
def test_export_takes_the_options_of_a_format(
    name, arguments, options, run, tmp_path, exported
):
    arguments = ["--to", name, "litert", *arguments]
    assert cli.main(["export", str(run), str(tmp_path), *arguments]) == 0
    assert exported == [
        (name, 7, f"{tmp_path}/{name}", options),
        ("litert", 7, f"{tmp_path}/litert"),
    ]


@pytest.mark.parametrize(
    ("arguments", "owner"),
    [
        (["--precision", "int8"], "onnx"),
        (["--no-text"], "saved_model"),
        (["--quantization", "int8"], "ctranslate2"),
        (["--max-positions", "99"], "ctranslate2"),
    ],
)
def test_export_refuses_an_option_of_another_format(
    arguments, owner, run, tmp_path, capsys, exported
):
    line = refusal(
        capsys, *("export", run, tmp_path, "--to", "litert", *arguments)
    )
    assert line == f"{' '.join(arguments)} is for --to {owner}, got --to litert"
    assert exported == []


def test_export_refuses_an_option_out_of_range_before_it_writes(
    run, tmp_path, capsys, exported
):
    arguments = ["--to", "onnx", "ctranslate2", "--max-positions", "63"]
    line = refusal(capsys, "export", run, tmp_path, *arguments)
    assert line.startswith("max_positions must be ")
    assert line.endswith("max_positions=63")
    assert exported == []


def test_defaults_of_flags_are_those_of_the_functions():
    parser = argparse.ArgumentParser().add_subparsers()
    options = export.add_parser(parser).get_default("options")
    assert list(options) == list(FORMATS)
    for name, flags in options.items():
        parameters = inspect.signature(FORMATS[name].export).parameters
        for option in flags:
            assert parameters[option.dest].default == option.default, name


def test_export_takes_every_format(run, tmp_path, exported):
    formats = ["ctranslate2", "litert", "onnx", "saved_model"]
    assert cli.main(["export", str(run), str(tmp_path), "--to", *formats]) == 0
    assert [name for name, *_ in exported] == formats


def test_export_says_what_a_target_cannot_carry_before_it_writes(
    run, tmp_path, capsys, exported, monkeypatch
):
    def refuse(translator, **options):
        raise ValueError("CTranslate2 cannot carry this model: d_k and d_v")

    replace(monkeypatch, "ctranslate2", check=refuse)
    line = refusal(
        capsys, "export", run, tmp_path, "--to", "onnx", "ctranslate2"
    )
    assert line == "CTranslate2 cannot carry this model: d_k and d_v"
    assert exported == []


def test_export_refuses_before_it_writes(run, tmp_path, capsys, exported):
    (tmp_path / "onnx").mkdir()
    line = refusal(capsys, "export", run, tmp_path)
    assert f"output folder '{tmp_path}/onnx' exists" in line
    assert exported == []
    assert tree(tmp_path) == [f"{tmp_path}/onnx"]


def test_export_names_the_extra_before_it_writes(
    run, tmp_path, capsys, exported, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    line = refusal(capsys, "export", run, tmp_path)
    assert line == (
        "exporting to ONNX needs the extra 'export': "
        "pip install 'keras-transformer-seq2seq[export]'"
    )
    assert exported == []


def test_export_that_answers_otherwise_is_an_error(
    run, tmp_path, capsys, monkeypatch
):
    def differ(translator, folder):
        raise ParityError("onnx: 19 of 20\nsentences")

    replace(monkeypatch, "onnx", export=differ)
    line = refusal(capsys, "export", run, tmp_path, "--to", "onnx")
    assert line == "onnx: 19 of 20 sentences"


def test_export_writes_a_saved_model_and_tells_its_parity(
    run, loaded, tmp_path, capsys, monkeypatch
):
    # tests/exporting compares for real, which takes long.
    figures = {"greedy": {"equal": 3, "of": 3, "difference": 0.0}}
    asked = []

    def check_parity(translator, folder, runner, signatures, sentences):
        asked.append((runner.name, set(signatures)))
        return figures

    monkeypatch.setattr(frame, "check_parity", check_parity)
    out = tmp_path / "new" / "out"
    assert cli.main(["export", str(run), str(out), "--to=saved_model"]) == 0
    assert json.loads(capsys.readouterr().out)["parity"] == figures
    assert asked == [("saved_model", set(SIGNATURES))]
    assert (out / "saved_model" / "saved_model.pb").is_file()
