"""Answers requests with ONNX Runtime alone: python run_onnx.py FOLDER IN OUT.

It needs onnxruntime and numpy, onnxruntime-extensions where text is translated,
and nothing of the package that exported.
"""

import json
import pathlib
import sys

import numpy as np
import onnxruntime

NUMPY_TYPES = {
    "tensor(int32)": "int32",
    "tensor(float)": "float32",
    "tensor(bool)": "bool",
    "tensor(string)": "string",
}
# In ONNX an output cannot have the name of an input.
NAMES = {"texts": "text"}


def open_session(folder, signature):
    """Opens the graph of a signature."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Threads that wait busily would cost more than they bring.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if signature == "translate":
        import onnxruntime_extensions

        options.register_custom_ops_library(
            onnxruntime_extensions.get_library_path()
        )
    return onnxruntime.InferenceSession(
        str(folder / f"{signature}.onnx"), options, ["CPUExecutionProvider"]
    )


def describe(arguments):
    """Gives name to type and axes."""
    return {
        NAMES.get(argument.name, argument.name): [
            NUMPY_TYPES[argument.type],
            list(argument.shape),
        ]
        for argument in arguments
    }


def answer(session, inputs):
    """Runs one request."""
    arguments = [
        *session.get_inputs(), *session.get_overridable_initializers()
    ]  # fmt: skip
    types = {a.name: NUMPY_TYPES[a.type] for a in arguments}
    feed = {
        name: np.asarray(
            value, object if types[name] == "string" else types[name]
        )
        for name, value in inputs.items()
    }
    names = [output.name for output in session.get_outputs()]
    outputs = session.run(names, feed)
    return {
        NAMES.get(name, name): {"value": value.tolist()}
        for name, value in zip(names, outputs, strict=True)
    }


def main(folder, requests_file, answers_file):
    """Answers the requests of a JSON file with another."""
    folder = pathlib.Path(folder)
    requests = json.loads(pathlib.Path(requests_file).read_text("utf-8"))
    sessions = {
        signature: open_session(folder, signature)
        for signature in {request["signature"] for request in requests}
    }
    interface = {
        signature: {
            "inputs": describe(
                [
                    *session.get_inputs(),
                    *session.get_overridable_initializers(),
                ]
            ),
            "outputs": describe(session.get_outputs()),
        }
        for signature, session in sessions.items()
    }
    answers = [
        answer(sessions[request["signature"]], request["inputs"])
        for request in requests
    ]
    pathlib.Path(answers_file).write_text(
        json.dumps({"interface": interface, "answers": answers}), "utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
