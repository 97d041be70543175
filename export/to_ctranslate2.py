"""Exports a run for CTranslate2: python -m export.to_ctranslate2 RUN OUT."""

import argparse
import json

from keras_transformer import Translator, export_ctranslate2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="folder that Translator.save wrote")
    parser.add_argument("out", help="folder to make")
    parser.add_argument(
        "--quantization", help="of CTranslate2: int8, float16, ..."
    )
    parser.add_argument(
        "--max-positions",
        type=int,
        default=1024,
        help="longest source and output; default 1024",
    )
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run)
    report = export_ctranslate2(
        translator,
        arguments.out,
        quantization=arguments.quantization,
        max_positions=arguments.max_positions,
    )
    print(json.dumps(report))


if __name__ == "__main__":
    main()
