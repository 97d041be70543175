"""Whether Node, its packages and Chromium are here, and what they answer."""

import functools
import subprocess

import pytest

from export.parity import CLIENTS, missing
from keras_transformer.exporting.parity_process import ask_process

ROOT = CLIENTS.parents[2]

needs_node = pytest.mark.skipif(
    missing("node") is not None, reason=str(missing("node"))
)
needs_chromium = pytest.mark.skipif(
    missing("browser") is not None, reason=str(missing("browser"))
)


def node(*arguments, **options):
    """Runs a program of Node; gives what it prints."""
    done = subprocess.run(
        ["node", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def asker(program):
    """A function for `check_parity(run=...)`."""
    return functools.partial(ask_process, ["node", ROOT / "export" / program])
