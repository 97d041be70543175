"""Answers requests with OpenVINO alone: python run_openvino.py FOLDER IN OUT.

It needs openvino and numpy, and nothing of the package that exported. OpenVINO
takes a default of ONNX for a constant, so it reads the graphs without them.
"""

import json
import pathlib
import sys

import numpy as np
import openvino

SETTINGS = {
    # Even where the CPU would choose bfloat16.
    "INFERENCE_PRECISION_HINT": "f32",
    # Its fused attention goes wrong from the 16th step of a loop on.
    "SNIPPETS_MODE": "DISABLE",
}
# OpenVINO fails where an axis of an option is empty; these say the same.
NOTHING = {
    "target_prefix": lambda pad: np.array([[pad]], np.int32),
    "forbidden_ids": lambda pad: np.array([-1], np.int32),
}


def compile_model(folder, signature, inputs):
    """Compiles the graph of a signature, without defaults if it has any."""
    explicit = any(each["default"] is not None for each in inputs)
    name = f"{signature}.explicit.onnx" if explicit else f"{signature}.onnx"
    core = openvino.Core()
    model = core.read_model(str(folder / name))
    return core.compile_model(model, "CPU", SETTINGS)


def answer(model, arguments, pad, inputs):
    """Runs one request."""
    feed = {}
    for each in arguments:
        name = each["name"]
        array = np.array(inputs.get(name, each["default"]), each["dtype"])
        if not array.size and name in NOTHING:
            array = NOTHING[name](pad)
        feed[name] = array
    outputs = model(feed)
    return {
        output.get_any_name(): {"value": outputs[output].tolist()}
        for output in model.outputs
    }


def main(folder, requests_file, answers_file):
    """Answers the requests of a JSON file with another."""
    folder = pathlib.Path(folder)
    requests = json.loads(pathlib.Path(requests_file).read_text("utf-8"))
    metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
    signatures = metadata["signatures"]
    models = {
        signature: compile_model(
            folder, signature, signatures[signature]["inputs"]
        )
        for signature in {request["signature"] for request in requests}
    }
    answers = [
        answer(
            models[request["signature"]],
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
