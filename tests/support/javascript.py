"""Whether Node, its packages and Chromium are here, and what they answer."""

import subprocess

import pytest

from export.parity import CLIENTS, missing

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
