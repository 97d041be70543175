"""Translates lines with TensorFlow: python_tensorflow.py FOLDER < LINES.

A client to copy. FOLDER is what `export_saved_model` wrote. It needs
tensorflow and tensorflow-text, and nothing of the package that trained the
model.
"""

import argparse
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's operators.


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what export_saved_model wrote")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    model = tf.saved_model.load(arguments.folder)
    # Not splitlines(): a line ends at a newline alone.
    lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    for start in range(0, len(lines), arguments.batch_size):
        texts = tf.constant(lines[start : start + arguments.batch_size])
        result = model.translate(texts, beam_size=arguments.beam_size)
        for text in result["text"][:, 0].numpy():
            # One line each, whatever the model writes.
            print(text.decode("utf-8").replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
