"""Exports a run as a SavedModel: python -m export.to_saved_model RUN OUT."""

import argparse
import json

from keras_transformer import Translator, export_saved_model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="folder that Translator.save wrote")
    parser.add_argument("out", help="folder to make")
    parser.add_argument(
        "--no-text",
        action="store_true",
        help="leave out `translate`, so that loading needs TensorFlow alone",
    )
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run)
    report = export_saved_model(
        translator, arguments.out, text=not arguments.no_text
    )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
