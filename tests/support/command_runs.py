"""What the tests of the commands share."""

import os
import subprocess
import sys

import numpy as np
import pytest

from keras_transformer import cli

WORDS = "one two three four five six seven eight nine ten eleven".split()
SMALL = (
    "--num-layers=1 --d-model=14 --num-heads=2 --d-ff=13 --epochs=3"
).split()


def pairs(count=50):
    generator = np.random.default_rng(5)
    rows = [generator.choice(WORDS, 5) for _ in range(count)]
    return [" ".join(row) for row in rows], [
        " ".join(row[::-1]).upper() for row in rows
    ]


def refusal(capsys, *arguments):
    """Runs what must be refused; gives the line on standard error."""
    code = cli.main([str(argument) for argument in arguments])
    output, errors = capsys.readouterr()
    assert code == 2
    assert output == ""
    assert errors.count("keras-transformer: error: ") == 1
    last = errors.splitlines()[-1]
    assert last.startswith("keras-transformer: error: ")
    return last.removeprefix("keras-transformer: error: ")


def tree(folder):
    return sorted(str(path) for path in folder.rglob("*"))


def assert_matches(line, pattern):
    with pytest.raises(ValueError, match=pattern):
        raise ValueError(line)


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "keras_transformer.cli", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        **options,
    )
