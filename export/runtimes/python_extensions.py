"""Translates lines in one graph: python_extensions.py FOLDER < LINES.

A client to copy. FOLDER is what `export_onnx` wrote. It needs onnxruntime,
onnxruntime-extensions and numpy, no tokenizer, and nothing of the package that
trained the model.
"""

import argparse
import pathlib
import sys

import numpy as np
import onnxruntime
import onnxruntime_extensions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what export_onnx wrote")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    options = onnxruntime.SessionOptions()
    # Else it warns of every option that has a default.
    options.log_severity_level = 3
    options.register_custom_ops_library(
        onnxruntime_extensions.get_library_path()
    )
    session = onnxruntime.InferenceSession(
        str(pathlib.Path(arguments.folder, "translate.onnx")),
        options,
        ["CPUExecutionProvider"],
    )
    # Not splitlines(): a line ends at a newline alone.
    lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    for start in range(0, len(lines), arguments.batch_size):
        texts = lines[start : start + arguments.batch_size]
        [found] = session.run(
            ["texts"],
            {
                "text": np.array(texts, object),
                "beam_size": np.array(arguments.beam_size, np.int32),
            },
        )
        for text in found[:, 0]:
            # One line each, whatever the model writes.
            print(text.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
