import pytest

from keras_transformer import cli
from keras_transformer.version import __version__
from tests.support.command_runs import refusal, start, tree


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"keras-transformer {__version__}\n"


@pytest.mark.parametrize(
    "command", [[], ["train"], ["translate"], ["evaluate"], ["export"]]
)
def test_help_is_printed(capsys, command):
    with pytest.raises(SystemExit) as exit_:
        cli.main([*command, "--help"])
    assert exit_.value.code == 0
    usage = " ".join(["usage: keras-transformer", *command])
    assert capsys.readouterr().out.startswith(usage)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "the following arguments are required: COMMAND"),
        ("fly", "invalid choice: 'fly'"),
        ("train", "the following arguments are required: --output"),
        ("train --output x --peak-rate 1 --factor 1", "not allowed with"),
        ("train --output x --epoch 1", "unrecognized arguments: --epoch"),
        ("translate x --beam-size y", "invalid int value: 'y'"),
        ("export x y --to torch", "invalid choice: 'torch'"),
    ],
)
def test_arguments_that_do_not_parse_exit_with_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments.split())
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["translate"], ["evaluate", "--tsv=x.tsv"], ["export", "out"]]
)
def test_folder_that_is_no_run_is_refused(
    tmp_path, capsys, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tsv").write_text("a\tb\n")
    name, *rest = command
    line = refusal(capsys, name, "nowhere", *rest)
    assert "got 'nowhere', which holds no config.json" in line
    assert tree(tmp_path) == [f"{tmp_path}/x.tsv"]


def test_command_refuses_in_a_process_of_its_own():
    with start("translate", "nowhere") as process:
        output, errors = process.communicate()
    assert process.returncode == 2
    assert output == b""
    assert b"Traceback" not in errors
    assert errors.splitlines()[-1].startswith(b"keras-transformer: error: ")
