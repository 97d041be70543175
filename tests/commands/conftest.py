"""A trained run, and ways to use it quickly."""

import gzip
import io
import sys

import keras
import pytest

from keras_transformer import Translator, cli
from tests.support.command_runs import SMALL, pairs


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    source, target = pairs()
    (folder / "s").write_text("\n".join(source), "utf-8")
    (folder / "t.gz").write_bytes(gzip.compress("\n".join(target).encode()))
    rows = zip(source, target, strict=True)
    (folder / "x.tsv").write_text("\n".join(map("\t".join, rows)), "utf-8")
    return folder


@pytest.fixture(scope="session")
def trained(corpus, tmp_path_factory):
    """The folder of a run, its standard output and its standard error."""
    run = tmp_path_factory.mktemp("runs") / "run"
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", errors)
        code = cli.main(
            [
                *("train", f"--output={run}", "--vocab-size=293", *SMALL),
                *(f"--source={corpus}/s", f"--target={corpus}/t.gz"),
                *(f"--valid-tsv={corpus}/x.tsv", "--seed=7"),
                *("--warmup-steps=2", "--peak-rate=0.03", "--ema=0.5"),
            ]
        )
    assert code == 0, errors.getvalue()
    return run, output.getvalue(), errors.getvalue()


@pytest.fixture
def run(trained):
    return trained[0]


@pytest.fixture(scope="session")
def translator(trained):
    return Translator.load(trained[0])


@pytest.fixture
def loaded(translator, monkeypatch):
    """Lets the command load at once what is loaded already."""
    monkeypatch.setattr(Translator, "load", lambda folder: translator)


@pytest.fixture
def translate(run, loaded, monkeypatch):
    """Runs the subcommand on bytes; gives exit code and bytes."""

    def call(data, *options):
        output = io.TextIOWrapper(io.BytesIO(), "utf-8")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.setattr(sys, "stdout", output)
        code = cli.main(["translate", str(run), *options])
        return code, output.buffer.getvalue()

    return call


@pytest.fixture
def uncompiled(monkeypatch):
    """Leaves XLA out, since it takes long to compile."""
    compile_ = keras.Model.compile

    def without_xla(*arguments, **options):
        compile_(*arguments, **{**options, "jit_compile": False})

    monkeypatch.setattr(keras.Model, "compile", without_xla)
