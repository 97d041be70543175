"""The parts that need Keras alone run on JAX, with no TensorFlow at all."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Two halves, to run side by side.
KERAS_ALONE = [
    ["tests/layers", "tests/test_transformer_step.py"],
    [
        "tests/training",
        "tests/test_transformer.py",
        "keras_transformer/layers",
        "keras_transformer/training",
        "keras_transformer/transformer.py",
    ],
]
# keras-hub needs TensorFlow; what can be learned, and how many parameters the
# large sizes have, is the same everywhere.
ELSEWHERE = [
    "--ignore=tests/layers/test_keras_hub.py",
    "--ignore=tests/training/test_learning.py",
    "--deselect=tests/test_transformer.py::"
    "test_sizes_of_the_paper_have_the_parameters_of_the_paper",
]


def start(paths):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pytest", "-q", "--doctest-modules"),
            *("-p", "tests.support.no_tensorflow", "-p", "no:cacheprovider"),
            *ELSEWHERE,
            *paths,
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "JAX_PLATFORMS": "cpu",
            # Most of the time goes to compiling what runs once.
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_keras_parts_pass_on_jax_without_tensorflow():
    processes = [start(paths) for paths in KERAS_ALONE]
    outputs = [process.communicate()[0] for process in processes]
    passed = 0
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output[-8000:]
        assert "skipped" not in output
        passed += int(re.search(r"(\d+) passed", output).group(1))
    assert passed > 300
