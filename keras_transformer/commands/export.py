"""`keras-transformer export`: a trained model for other runtimes."""

import json
import pathlib

from keras_transformer.exporting import (
    ParityError,
    export_onnx,
    export_saved_model,
)
from keras_transformer.exporting.onnx_graphs import import_onnx
from keras_transformer.folders import refuse_existing
from keras_transformer.translator import Translator

_FORMATS = ("saved_model", "onnx")


def add_parser(subparsers):
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "export",
        help="export a model, decoding included",
        description="Writes OUT/saved_model and OUT/onnx, whose graphs hold "
        "the decoding, and compares what they answer with what the model "
        "answers. Prints a line of JSON for each: of how many sentences how "
        "many are equal, and the largest difference of a score.",
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="RUN", help="folder of the model")
    parser.add_argument(
        "output", metavar="OUT", help="folder to write the exports into"
    )
    parser.add_argument(
        "--to",
        nargs="+",
        choices=_FORMATS,
        default=_FORMATS,
        metavar="FORMAT",
        help=f"of {', '.join(_FORMATS)}; default both",
    )
    return parser


def run(arguments, output):
    """Exports to each format."""
    formats = list(dict.fromkeys(arguments.to))
    folders = {name: pathlib.Path(arguments.output, name) for name in formats}
    for folder in folders.values():
        refuse_existing(folder)
    if "onnx" in formats:  # Before the first export, not after it.
        import_onnx()
    exporters = {"saved_model": export_saved_model, "onnx": export_onnx}
    translator = Translator.load(arguments.model)
    for name, folder in folders.items():
        try:
            report = exporters[name](translator, folder)
        except ParityError as error:
            raise ValueError(str(error)) from error
        result = {"format": name, "folder": str(folder), "parity": report}
        print(json.dumps(result, ensure_ascii=False), file=output, flush=True)
