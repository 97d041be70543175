"""Several devices and processes train as one does."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.support import distributed_fit

ROOT = Path(__file__).parents[2]


def start(*arguments, **environment):
    # Not pipes: a full one would block a process that another waits for.
    output, errors = (tempfile.TemporaryFile("w+") for _ in range(2))
    process = subprocess.Popen(
        [sys.executable, distributed_fit.__file__, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=output,
        stderr=errors,
    )
    return process, output, errors


def answer(started):
    process, output, errors = started
    process.wait()
    with output, errors:
        for stream in (output, errors):
            stream.seek(0)
        assert process.returncode == 0, errors.read()[-4000:]
        return json.loads(output.read().splitlines()[-1])


def differences(one, other):
    """Largest differences of the losses and of the weights."""
    return [
        max(
            np.abs(np.subtract(a, b)).max()
            for a, b in zip(one[what], other[what], strict=True)
        )
        for what in ("loss", "weights")
    ]


@pytest.fixture(scope="module")
def mirrored():
    return answer(start("mirrored"))


@pytest.mark.parametrize(
    "one, two",
    [("corpus", "corpus"), ("equal", "equal"), ("unequal", "weighted")],
)
def test_two_replicas_train_as_one_device_does(mirrored, one, two):
    loss, weights = differences(
        mirrored[f"{one} on 1"], mirrored[f"{two} on 2"]
    )
    assert loss < 1e-6
    assert weights < 1e-5


def test_without_weights_replicas_average_their_means(mirrored):
    """What `token_weights` are for: the mean of means is another."""
    _, weights = differences(mirrored["unequal on 1"], mirrored["unequal on 2"])
    assert weights > 1e-4


def test_two_processes_train_as_one_does():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    environment = {
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
    }
    alone = start("worker", address, 1, 0, **environment)
    workers = [
        start("worker", address, 2, rank, **environment) for rank in range(2)
    ]
    expected = answer(alone)
    for worker in workers:
        loss, weights = differences(answer(worker), expected)
        assert loss < 1e-6
        assert weights < 1e-5
