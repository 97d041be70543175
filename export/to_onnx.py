"""Exports a run as ONNX graphs: python -m export.to_onnx RUN OUT."""

import argparse
import json

from keras_transformer import Translator, export_onnx
from keras_transformer.exporting.onnx_graphs import PRECISIONS


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="folder that Translator.save wrote")
    parser.add_argument("out", help="folder to make")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run)
    report = export_onnx(
        translator, arguments.out, precision=arguments.precision
    )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
