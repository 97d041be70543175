"""`keras-transformer export`: a trained model for other runtimes."""

import functools
import json
import pathlib

from keras_transformer.exporting import (
    ParityError,
    export_ctranslate2,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_transformer.exporting.ctranslate2_model import (
    check_ctranslate2,
    import_ctranslate2,
)
from keras_transformer.exporting.onnx_graphs import PRECISIONS, import_onnx
from keras_transformer.folders import refuse_existing
from keras_transformer.translator import Translator

_FORMATS = ("saved_model", "onnx", "litert", "ctranslate2")
_DEFAULT = ("saved_model", "onnx")


def add_parser(subparsers):
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "export",
        help="export a model, decoding included",
        description="Writes OUT/saved_model and OUT/onnx, whose graphs hold "
        "the decoding, or models for LiteRT or CTranslate2, and compares what "
        "they answer with what the model answers. Prints a line of JSON for "
        "each: of how many sentences how many are equal, and the largest "
        "difference of a score.",
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
        default=_DEFAULT,
        metavar="FORMAT",
        help=f"of {', '.join(_FORMATS)}; default {' '.join(_DEFAULT)}",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=PRECISIONS[0],
        help="of the weights of ONNX: %(choices)s; default %(default)s",
    )
    return parser


def run(arguments, output):
    """Exports to each format."""
    formats = list(dict.fromkeys(arguments.to))
    folders = {name: pathlib.Path(arguments.output, name) for name in formats}
    for folder in folders.values():
        refuse_existing(folder)
    if arguments.precision != PRECISIONS[0] and "onnx" not in formats:
        raise ValueError(
            f"--precision {arguments.precision} is for --to onnx, got --to "
            f"{' '.join(formats)}"
        )
    # What cannot be is said before the first export, not after it.
    if "onnx" in formats:
        import_onnx()
    if "ctranslate2" in formats:
        import_ctranslate2()
    translator = Translator.load(arguments.model)
    if "ctranslate2" in formats:
        check_ctranslate2(translator)
    exporters = {
        "saved_model": export_saved_model,
        "onnx": functools.partial(export_onnx, precision=arguments.precision),
        "litert": export_litert,
        "ctranslate2": export_ctranslate2,
    }
    for name, folder in folders.items():
        try:
            report = exporters[name](translator, folder)
        except ParityError as error:
            raise ValueError(str(error)) from error
        result = {"format": name, "folder": str(folder), "parity": report}
        print(json.dumps(result, ensure_ascii=False), file=output, flush=True)
