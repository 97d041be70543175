"""Arguments that several subcommands take."""

from keras_transformer.decoding.options import (
    OPTIONS,
    STRATEGIES,
    options_of,
)
from keras_transformer.text import ParallelCorpus

# Flags that `translate` adds itself: other commands want one translation of a
# line, and none can take a forced start as ids.
ONLY_TRANSLATE = ("num_hypotheses", "target_prefix")


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
    """Adds the options of decoding but those of `ONLY_TRANSLATE`."""
    parser.add_argument(
        "--batch-size",
        type=int,
        default=32,
        metavar="N",
        help="lines to decode at once, default %(default)s; changes the "
        "speed, not the result",
    )
    groups = {
        STRATEGIES: parser.add_argument_group("every strategy"),
        ("beam",): parser.add_argument_group("beam"),
        ("sample",): parser.add_argument_group("sample"),
    }
    for option in OPTIONS:
        if option.name not in ONLY_TRANSLATE:
            add_option(groups[option.strategies], option)
    groups[("sample",)].add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="the same seed and lines give the same translations; default: "
        "another one each time",
    )


def add_option(group, option):
    """Adds the flag of an `Option`; what is not given is None."""
    kind = {"type": int, "metavar": "N"}
    if option.is_flag:
        kind = {"action": "store_true", "default": None}
    elif option.words:
        kind = {"choices": option.words}
    elif option.shape:
        kind = {"type": int, "metavar": "ID", "nargs": "+"}
    elif option.dtype == "float32":
        kind = {"type": float, "metavar": "X"}
    default = "" if option.shape else f"{option.default:g}"
    group.add_argument(
        f"--{option.name.replace('_', '-')}",
        help=option.help.format(default=default),
        **kind,
    )


def decoding_options(arguments, strategy=None):
    """Gives the options of decoding that were given, as a dict.

    One that is not given is not passed on, so that the defaults stay in one
    place. What the command's strategy does not take is left in for the
    Translator to refuse.

    Args:
        arguments: what argparse found.
        strategy: str, to give only what this one takes.
    """
    found = {}
    for option in options_of(*([strategy] if strategy else STRATEGIES)):
        value = getattr(arguments, option.name, None)
        if value is not None:
            found[option.name] = option.words[value] if option.words else value
    if strategy in (None, "sample") and arguments.seed is not None:
        found["seed"] = arguments.seed
    return found
