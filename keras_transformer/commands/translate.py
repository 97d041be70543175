"""`keras-transformer translate`: standard input to standard output."""

import argparse
import codecs
import contextlib
import itertools
import sys

from keras_transformer.commands.arguments import (
    add_decoding,
    add_option,
    decoding_options,
)
from keras_transformer.commands.translate_json import JSON_HELP, as_json
from keras_transformer.decoding.options import BY_NAME, STRATEGIES
from keras_transformer.translator import Translator

_DESCRIPTION = """\
Translates standard input to standard output, one sentence a line, UTF-8.

n lines in give n lines out, in order. A line ends at a newline and nowhere
else; a carriage return before it is dropped. A blank line gives an empty
line. Lines are translated as they arrive; with --strategy sample once all
are read, since a line's place among all decides what is drawn for it.

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
        epilog=JSON_HELP,
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
    group = parser.add_argument_group("forced start")
    group = group.add_mutually_exclusive_group()
    group.add_argument(
        "--target-prefix",
        metavar="TEXT",
        help=BY_NAME["target_prefix"].help,
    )
    group.add_argument(
        "--target-prefix-file",
        metavar="FILE",
        help="how each must begin: as many lines as standard input has, read "
        "in step with it; a blank one forces nothing",
    )
    group = parser.add_argument_group("output")
    add_option(group, BY_NAME["num_hypotheses"])
    group.add_argument(
        "--json",
        action="store_true",
        help="give a JSON object for each line, on a line; see below",
    )
    return parser


def run(arguments, output):
    """Translates all of standard input."""
    options = {
        "strategy": arguments.strategy,
        "batch_size": arguments.batch_size,
        "token_log_probs": arguments.json,
        "attention": arguments.json,
        **decoding_options(arguments),
    }
    with _open_prefixes(arguments.target_prefix_file) as prefixes:
        translator = Translator.load(arguments.model)
        translator.hypotheses([], **options)  # Refuses before it reads.
        for lines in _chunks(arguments):
            if prefixes:
                options["target_prefix"] = prefixes.take(len(lines))
            found = translator.hypotheses(lines, **options)
            if arguments.json:
                rows = as_json(translator, lines, found)
            elif (arguments.num_hypotheses or 1) == 1:
                rows = (best.text.translate(_BLANKS) for best, *_ in found)
            else:
                rows = _as_columns(found, arguments.num_hypotheses)
            text = "".join(f"{row}\n" for row in rows)
            output.buffer.write(text.encode("utf-8"))
            output.buffer.flush()
        if prefixes:
            prefixes.end()


def _chunks(arguments):
    """Gives the lines to translate together."""
    chunks = read_chunks(
        sys.stdin.buffer, _BATCHES_AT_ONCE * arguments.batch_size
    )
    if arguments.strategy == "sample":
        return [list(itertools.chain.from_iterable(chunks))]
    return chunks


def read_chunks(stream, most_lines, name="standard input"):
    """Reads lines as they arrive, by the rules of `read_lines`.

    Args:
        stream: a buffered binary stream.
        most_lines: int, the most lines of a chunk.
        name: str, what an error calls the stream.

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
            yield [_decode(name, *line) for line in enumerate(chunk, number)]
            number += len(chunk)
    if rest:
        yield [_decode(name, number, rest)]


def _decode(name, number, line):
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}, line {number}: expected UTF-8 text, got the bytes "
            f"{line[error.start : error.start + 4].hex(' ')}"
        ) from error


@contextlib.contextmanager
def _open_prefixes(path):
    """Opens the file of prefixes; gives None if there is none."""
    if path is None:
        yield None
        return
    with open(path, "rb") as stream:
        yield _Prefixes(path, stream)


class _Prefixes:
    """The lines of a file that must be as many as those of standard input."""

    def __init__(self, path, stream):
        self.path = path
        self.lines = itertools.chain.from_iterable(read_chunks(stream, 1, path))
        self.taken = 0

    def take(self, count):
        """Gives the prefixes of the next lines."""
        prefixes = list(itertools.islice(self.lines, count))
        self.taken += len(prefixes)
        if len(prefixes) < count:
            raise ValueError(
                f"{self.path}: expected as many lines as standard input has, "
                f"got {self.taken} and a line {self.taken + 1} on standard "
                "input"
            )
        return prefixes

    def end(self):
        """Refuses prefixes that are left over."""
        for _ in self.lines:
            raise ValueError(
                f"{self.path}, line {self.taken + 1}: expected as many lines "
                f"as standard input has, which ended after {self.taken}"
            )


def _as_columns(found, num_hypotheses):
    for hypotheses in found:
        for text, score, *_ in hypotheses:
            yield f"{score:.6f}\t{text.translate(_BLANKS)}"
        yield from ["-inf\t"] * (num_hypotheses - len(hypotheses))
