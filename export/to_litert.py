"""Exports a run for LiteRT: python -m export.to_litert RUN OUT."""

import argparse
import json

from keras_transformer import Translator, export_litert


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="folder that Translator.save wrote")
    parser.add_argument("out", help="folder to make")
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run)
    print(json.dumps(export_litert(translator, arguments.out)))


if __name__ == "__main__":
    main()
