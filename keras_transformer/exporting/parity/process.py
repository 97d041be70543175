"""A process of its own that answers requests with an export."""

import json
import math
import os
import pathlib
import subprocess
import tempfile


class ParityError(RuntimeError):
    """An export that does not answer as the Translator does."""


def ask_process(command, folder, requests):
    """Runs a program, in a folder of its own, that answers requests.

    The program gets three more arguments: the exported folder and the names
    of two JSON files, the requests (a list of objects with `signature` and
    `inputs`) and the answers it is to write: an object with `interface`, of
    each signature the `inputs` and `outputs` as `[type, axes]`, or null if that
    is not to be compared, and `answers`, a list of objects of output name to an
    object with `value`, in which null is minus infinity.

    Args:
        command: list of str, the program and its first arguments.
        folder: the exported folder.
        requests: list of `Request`.

    Returns:
        What it wrote.

    Raises:
        ParityError: if it fails; the message ends in what it said.
    """
    content = [
        {
            "signature": request.question.signature,
            "inputs": {**request.inputs, **request.question.options},
        }
        for request in requests
    ]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "requests.json").write_text(json.dumps(content), "utf-8")
        done = subprocess.run(
            [
                *map(str, command),
                str(pathlib.Path(folder).absolute()),
                "requests.json",
                "answers.json",
            ],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode:
            raise ParityError(
                f"{folder}: a fresh process cannot run the export:\n"
                f"{done.stderr.strip()[-4000:]}"
            )
        answers = json.loads((scratch / "answers.json").read_text("utf-8"))
    for answer in answers["answers"]:
        for output in answer.values():
            output["value"] = _without_null(output["value"])
    return answers


def _without_null(value):
    if isinstance(value, list):
        return [_without_null(each) for each in value]
    return -math.inf if value is None else value
