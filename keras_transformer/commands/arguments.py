"""Arguments that several subcommands take."""

from keras_transformer.decoding import SIGNATURES
from keras_transformer.text import ParallelCorpus


def add_corpus(parser, prefix="", use=""):
    """Adds `--source`, `--target` and `--tsv`.

    Args:
        parser: an argparse parser or group.
        prefix: str that goes before the names, such as "valid-".
        use: str for the help, what the text is for.
    """
    parser.add_argument(
        f"--{prefix}source",
        metavar="FILE",
        help=f"lines to translate{use}, UTF-8, plain or .gz",
    )
    parser.add_argument(
        f"--{prefix}target",
        metavar="FILE",
        help="their translations, line by line",
    )
    parser.add_argument(
        f"--{prefix}tsv",
        metavar="FILE",
        help="instead of the two: one file, source and target split by a tab",
    )


def read_corpus(arguments, prefix="", required=True, keep_blank=False):
    """Reads the corpus that `add_corpus` asked for.

    Returns:
        `ParallelCorpus`, or None if none is given and none is required.

    Raises:
        ValueError: if not exactly one way of giving it is used, or the files
            do not fit.
    """
    source, target, tsv = (
        getattr(arguments, f"{prefix.replace('-', '_')}{name}")
        for name in ("source", "target", "tsv")
    )
    if source and target and not tsv:
        return ParallelCorpus.from_files(source, target, keep_blank=keep_blank)
    if tsv and not source and not target:
        return ParallelCorpus.from_tsv(tsv, keep_blank=keep_blank)
    if required or source or target or tsv:
        raise ValueError(
            f"expected --{prefix}source and --{prefix}target, or "
            f"--{prefix}tsv alone, got source={source}, target={target}, "
            f"tsv={tsv}"
        )
    return None


def add_decoding(parser):
    """Adds the options of decoding but the strategy."""
    parser.add_argument("--beam-size", type=int, help="beam: width, default 4")
    parser.add_argument(
        "--length-penalty",
        type=float,
        help="beam: exponent of the length penalty, default 0.6; 0 turns it "
        "off, more favours longer translations",
    )
    parser.add_argument(
        "--max-length",
        type=int,
        help="most pieces of a translation, default -1: source + 50",
    )
    parser.add_argument(
        "--min-length",
        type=int,
        help="fewest pieces of a translation, default 0",
    )
    parser.add_argument(
        "--batch-size",
        type=int,
        default=32,
        help="lines to decode at once, default %(default)s; changes the "
        "speed, not the result",
    )


def decoding_options(arguments, strategy="beam"):
    """Gives the options of decoding that were given, as a dict.

    One that is not given is not passed on, so that the defaults stay in one
    place. What a strategy does not take is left in for the Translator to
    refuse, unless another `strategy` than that of the command is asked for.
    """
    names = [a.name for a in SIGNATURES[strategy].inputs[1:]]
    options = {name: getattr(arguments, name, None) for name in names}
    return {name: v for name, v in options.items() if v is not None}
