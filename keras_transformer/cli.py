"""The command `keras-transformer`.

Results go to standard output and nothing else does: progress, warnings and
errors go to standard error. Exit codes: 0 success, 2 a refusal, with one line
that says what was wrong, 130 interrupted, 141 nobody reads the output.
"""

import argparse
import contextlib
import logging
import os
import sys

from keras_transformer.commands import (
    average,
    evaluate,
    export,
    train,
    translate,
)
from keras_transformer.version import __version__

PROGRAM = "keras-transformer"

_REFUSED = 2
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main(arguments=None):
    """Runs the command.

    Args:
        arguments: list of str, by default those of the command line.

    Returns:
        int, the exit code.

    Raises:
        SystemExit: from argparse, for `--help`, `--version` and arguments
            that it refuses.
    """
    arguments = _parser().parse_args(arguments)
    output = sys.stdout
    try:
        # Keras prints its progress on standard output.
        with contextlib.redirect_stdout(sys.stderr), _messages():
            arguments.run(arguments, output)
            output.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        _discard(output)
        return _BROKEN_PIPE
    except (ImportError, OSError, ValueError) as error:
        reason = " ".join(line.strip() for line in str(error).splitlines())
        print(f"{PROGRAM}: error: {reason}", file=sys.stderr)
        return _REFUSED
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        PROGRAM,
        description="Trains, runs, scores and exports Transformers that turn "
        "lines of text into other lines of text.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version", action="version", version=f"{PROGRAM} {__version__}"
    )
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (train, average, translate, evaluate, export):
        subparser = command.add_parser(subparsers)
        subparser.set_defaults(run=command.run)
    return parser


@contextlib.contextmanager
def _messages():
    """Shows what the package logs on standard error."""
    logger = logging.getLogger("keras_transformer")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def _discard(output):
    """Points `output` nowhere, or Python complains of it once more at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output.fileno())
        os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
