"""`keras-transformer export`: a trained model for other runtimes."""

import json
import pathlib

from keras_transformer.exporting import FORMATS, ParityError
from keras_transformer.folders import refuse_existing
from keras_transformer.translator import Translator

_DEFAULT = tuple(name for name in FORMATS if FORMATS[name].by_default)


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
        choices=tuple(FORMATS),
        default=_DEFAULT,
        metavar="FORMAT",
        help=f"of {', '.join(FORMATS)}; default {' '.join(_DEFAULT)}",
    )
    options = {
        name: [
            parser.add_argument(flag, **keywords)
            for flag, keywords in entry.flags.items()
        ]
        for name, entry in FORMATS.items()
    }
    parser.set_defaults(options=options)
    return parser


def run(arguments, output):
    """Exports to each format."""
    formats = list(dict.fromkeys(arguments.to))
    folders = {name: pathlib.Path(arguments.output, name) for name in formats}
    for folder in folders.values():
        refuse_existing(folder)
    options = {name: _given(name, arguments, formats) for name in FORMATS}
    # What cannot be is said before the first export, not after it.
    for name in formats:
        FORMATS[name].require()
    translator = Translator.load(arguments.model)
    for name in formats:
        FORMATS[name].check(translator, **options[name])
    for name, folder in folders.items():
        try:
            report = FORMATS[name].export(translator, folder, **options[name])
        except ParityError as error:
            raise ValueError(str(error)) from error
        result = {"format": name, "folder": str(folder), "parity": report}
        print(json.dumps(result, ensure_ascii=False), file=output, flush=True)


def _given(name, arguments, formats):
    """Gives the options of a format that are not as by default.

    Raises:
        ValueError: if there are any, but the format is not asked for.
    """
    given = {}
    for option in arguments.options[name]:
        value = getattr(arguments, option.dest)
        if value == option.default:
            continue
        given[option.dest] = value
        if name not in formats:
            flag = option.option_strings[0]
            # A flag without a value has a bool.
            shown = flag if isinstance(value, bool) else f"{flag} {value}"
            raise ValueError(
                f"{shown} is for --to {name}, got --to {' '.join(formats)}"
            )
    return given
