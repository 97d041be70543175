"""Whether Node, its packages and Chromium are here, and what they answer."""

import functools
import os
import pathlib
import shutil
import subprocess

import pytest

from keras_transformer.exporting.parity_process import ask_process

ROOT = pathlib.Path(__file__).parents[2]
CLIENTS = ROOT / "export" / "runtimes" / "javascript"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")

needs_node = pytest.mark.skipif(
    not (shutil.which("node") and (CLIENTS / "node_modules").exists()),
    reason="needs Node, and npm install in export/runtimes/javascript",
)
needs_chromium = pytest.mark.skipif(
    not pathlib.Path(CHROMIUM).exists(), reason=f"needs {CHROMIUM}"
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
