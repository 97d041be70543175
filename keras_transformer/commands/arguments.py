"""Arguments that several subcommands take."""

from keras_transformer.decoding import SIGNATURES, STRATEGIES
from keras_transformer.decoding.penalties import GNMT, POWER
from keras_transformer.text import ParallelCorpus

_FORMS = {"gnmt": GNMT, "power": POWER}


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
    """Adds the options of decoding but the strategy and the forced start."""
    parser.add_argument(
        "--batch-size",
        type=int,
        default=32,
        metavar="N",
        help="lines to decode at once, default %(default)s; changes the "
        "speed, not the result",
    )
    _add_constraints(parser.add_argument_group("every strategy"))
    _add_beam(parser.add_argument_group("beam"))
    _add_sampling(parser.add_argument_group("sample"))


def _add_constraints(group):
    group.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="most pieces of a translation, the end of the sentence counted, "
        "default -1: source + 50",
    )
    group.add_argument(
        "--min-length",
        type=int,
        metavar="N",
        help="fewest pieces of a translation, its end counted, default 0",
    )
    group.add_argument(
        "--no-repeat-ngram-size",
        type=int,
        metavar="N",
        help="no N pieces in a row may occur twice in a translation, "
        "default 0: off",
    )
    group.add_argument(
        "--repetition-penalty",
        type=float,
        metavar="X",
        help="above 1 makes pieces that occurred less likely, default 1: off",
    )
    group.add_argument(
        "--forbidden-ids",
        type=int,
        nargs="+",
        metavar="ID",
        help="pieces that are never generated, default none",
    )


def _add_beam(group):
    group.add_argument(
        "--beam-size", type=int, metavar="N", help="width, default 4"
    )
    group.add_argument(
        "--length-penalty",
        type=float,
        metavar="X",
        help="exponent of the length penalty, default 0.6; 0 turns it off, "
        "more favours longer translations",
    )
    group.add_argument(
        "--length-penalty-form",
        choices=_FORMS,
        help="gnmt: ((5 + length) / 6) ^ X, the default; power: length ^ X, "
        "as CTranslate2, fairseq, Marian and Hugging Face have it",
    )
    group.add_argument(
        "--coverage-penalty",
        type=float,
        metavar="X",
        help="how much to punish that part of the source is left out, "
        "default 0: off",
    )
    group.add_argument(
        "--early-stopping",
        action="store_true",
        default=None,
        help="stop a line once as many translations as the beam is wide are "
        "finished, though others might still beat them",
    )


def _add_sampling(group):
    group.add_argument(
        "--temperature",
        type=float,
        metavar="X",
        help="divides the logits, default 1: below, the likely becomes "
        "likelier; 0 always takes the likeliest",
    )
    group.add_argument(
        "--top-k",
        type=int,
        metavar="N",
        help="draw from the N likeliest pieces only, default 0: all",
    )
    group.add_argument(
        "--top-p",
        type=float,
        metavar="X",
        help="draw only from the likeliest pieces that together have this "
        "probability, default 1: all",
    )
    group.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="the same seed and lines give the same translations; default: "
        "another one each time",
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
    strategies = [strategy] if strategy else STRATEGIES
    names = [a.name for s in strategies for a in SIGNATURES[s].inputs[1:]]
    options = {name: getattr(arguments, name, None) for name in names}
    options = {name: v for name, v in options.items() if v is not None}
    if "length_penalty_form" in options:
        options["length_penalty_form"] = _FORMS[options["length_penalty_form"]]
    return options
