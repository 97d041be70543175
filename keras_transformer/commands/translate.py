"""`keras-transformer translate`: standard input to standard output."""

import argparse
import codecs
import sys

from keras_transformer.commands.arguments import (
    add_decoding,
    decoding_options,
)
from keras_transformer.decoding import STRATEGIES
from keras_transformer.translator import Translator

_DESCRIPTION = """\
Translates standard input to standard output, one sentence a line, UTF-8.

n lines in give n lines out, in order. A line ends at a newline and nowhere
else; a carriage return before it is dropped. A blank line gives an empty
line. Lines are translated as they arrive.

With --num-hypotheses N above 1 each line gives N lines, best first, of two
columns split by a tab: score and translation. Where there are fewer
hypotheses the rest have the score -inf and no text.
"""

_READ_BYTES = 1 << 16
# So many batches are sorted by length together, so that little is padding.
_BATCHES_AT_ONCE = 16
# In a translation they would end the line, or begin a column.
_BLANKS = str.maketrans("\n\r\t", "   ")


def add_parser(subparsers):
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "translate",
        help="translate standard input",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="RUN", help="folder of the model")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="beam",
        help="default %(default)s",
    )
    add_decoding(parser)
    parser.add_argument(
        "--num-hypotheses",
        type=int,
        help="beam: translations to give of each line, default 1",
    )
    return parser


def run(arguments, output):
    """Translates all of standard input."""
    translator = Translator.load(arguments.model)
    options = {
        "strategy": arguments.strategy,
        "batch_size": arguments.batch_size,
        **decoding_options(arguments),
    }
    translator.hypotheses([], **options)  # Refuses options before it reads.
    most_lines = _BATCHES_AT_ONCE * arguments.batch_size
    for lines in read_chunks(sys.stdin.buffer, most_lines):
        found = translator.hypotheses(lines, **options)
        text = _format(found, arguments.num_hypotheses or 1)
        output.buffer.write(text.encode("utf-8"))
        output.buffer.flush()


def read_chunks(stream, most_lines):
    """Reads lines as they arrive, by the rules of `read_lines`.

    Args:
        stream: a buffered binary stream.
        most_lines: int, the most lines of a chunk.

    Yields:
        List of str.

    Raises:
        ValueError: if a line is not UTF-8.
    """
    number, rest = 1, b""
    while data := stream.read1(_READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for start in range(0, len(lines), most_lines):
            chunk = lines[start : start + most_lines]
            yield [_decode(*line) for line in enumerate(chunk, number)]
            number += len(chunk)
    if rest:
        yield [_decode(number, rest)]


def _decode(number, line):
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"standard input, line {number}: expected UTF-8 text, got the "
            f"bytes {line[error.start : error.start + 4].hex(' ')}"
        ) from error


def _format(found, num_hypotheses):
    if num_hypotheses == 1:
        rows = [best.text.translate(_BLANKS) for best, *_ in found]
        return "".join(f"{row}\n" for row in rows)
    rows = []
    for hypotheses in found:
        rows += [
            f"{hypothesis.score:.6f}\t{hypothesis.text.translate(_BLANKS)}\n"
            for hypothesis in hypotheses
        ]
        rows += ["-inf\t\n"] * (num_hypotheses - len(hypotheses))
    return "".join(rows)
