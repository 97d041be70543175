"""Answers requests with TensorFlow alone: run_saved_model.py FOLDER IN OUT.

It needs tensorflow, and tensorflow-text where text is translated, and nothing
of the package that exported.
"""

import json
import pathlib
import sys

import tensorflow as tf


def describe(signature):
    """Gives names, types and axes of a signature."""
    _, inputs = signature.structured_input_signature
    return {
        "inputs": describe_specs(inputs),
        "outputs": describe_specs(signature.structured_outputs),
    }


def describe_specs(specs):
    """Gives name to type and axes."""
    return {
        name: [spec.dtype.name, spec.shape.as_list()]
        for name, spec in specs.items()
    }


def answer(loaded, signature, inputs):
    """Runs one request."""
    _, specs = loaded.signatures[signature].structured_input_signature
    tensors = {
        name: tf.constant(value, specs[name].dtype)
        for name, value in inputs.items()
    }
    if set(inputs) == set(specs):
        outputs = loaded.signatures[signature](**tensors)
    else:
        # Called from Python, a signature wants every input; the function
        # attached to the model knows the defaults.
        outputs = getattr(loaded, signature)(**tensors)
    return {name: to_json(value) for name, value in outputs.items()}


def to_json(tensor):
    """Gives the values of a tensor."""
    value = tensor.numpy()
    if tensor.dtype == tf.string:
        texts = [text.decode("utf-8") for text in value.reshape(-1)]
        width = value.shape[1]
        return {
            "value": [
                texts[row * width : (row + 1) * width]
                for row in range(value.shape[0])
            ]
        }
    return {"value": value.tolist()}


def main(folder, requests_file, answers_file):
    """Answers the requests of a JSON file with another."""
    requests = json.loads(pathlib.Path(requests_file).read_text("utf-8"))
    graph = pathlib.Path(folder, "saved_model.pb").read_bytes()
    if b"SentencepieceOp" in graph:
        # Registers that operator, and others that such a model uses.
        import tensorflow_text  # noqa: F401
    loaded = tf.saved_model.load(folder)
    interface = {
        name: describe(signature)
        for name, signature in loaded.signatures.items()
    }
    answers = [
        answer(loaded, request["signature"], request["inputs"])
        for request in requests
    ]
    pathlib.Path(answers_file).write_text(
        json.dumps({"interface": interface, "answers": answers}), "utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
