"""The parts that need Keras alone run on JAX, with no TensorFlow at all."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KERAS_ALONE = [
    "tests/layers",
    "tests/training",
    "tests/test_transformer.py",
    "tests/test_transformer_step.py",
    "keras_transformer/layers",
    "keras_transformer/training",
    "keras_transformer/transformer.py",
]
# keras-hub needs TensorFlow; hundreds of millions of parameters need counting
# once only.
ELSEWHERE = [
    "--ignore=tests/layers/test_keras_hub.py",
    "--deselect=tests/test_transformer.py::"
    "test_sizes_of_the_paper_have_the_parameters_of_the_paper",
]


def test_keras_parts_pass_on_jax_without_tensorflow():
    result = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--doctest-modules"),
            *("-p", "tests.support.no_tensorflow", "-p", "no:cacheprovider"),
            *ELSEWHERE,
            *KERAS_ALONE,
        ],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr
    passed = re.search(r"(\d+) passed", result.stdout)
    assert int(passed.group(1)) > 200
    assert "skipped" not in result.stdout
