"""Answers requests with LiteRT alone: python run_litert.py FOLDER IN OUT.

It needs ai-edge-litert (or the interpreter within TensorFlow) and numpy, and
nothing of the package that exported.
"""

import json
import pathlib
import sys

import numpy as np

try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    import tensorflow

    Interpreter = tensorflow.lite.Interpreter

# LiteRT fails where an axis of an option is empty; these say the same.
NOTHING = {
    "target_prefix": lambda pad: np.array([[pad]], np.int32),
    "forbidden_ids": lambda pad: np.array([-1], np.int32),
}


def answer(runner, arguments, pad, inputs):
    """Runs one request; LiteRT wants every input."""
    feed = {}
    for each in arguments:
        name = each["name"]
        array = np.array(inputs.get(name, each["default"]), each["dtype"])
        if not array.size and name in NOTHING:
            array = NOTHING[name](pad)
        feed[name] = array
    outputs = runner(**feed)
    return {name: {"value": value.tolist()} for name, value in outputs.items()}


def main(folder, requests_file, answers_file):
    """Answers the requests of a JSON file with another."""
    folder = pathlib.Path(folder)
    requests = json.loads(pathlib.Path(requests_file).read_text("utf-8"))
    metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
    signatures = metadata["signatures"]
    interpreter = Interpreter(str(folder / "model.tflite"))
    answers = [
        answer(
            interpreter.get_signature_runner(request["signature"]),
            signatures[request["signature"]]["inputs"],
            metadata["special_ids"]["pad"],
            request["inputs"],
        )
        for request in requests
    ]
    pathlib.Path(answers_file).write_text(
        json.dumps({"interface": None, "answers": answers}), "utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
