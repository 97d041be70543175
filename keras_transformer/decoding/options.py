"""The options of decoding: one table, of which all else is made.

Graphs take them as inputs and the command as flags, metadata tells clients
what they do, and exports are tried with them.
"""

from typing import NamedTuple

STRATEGIES = ("beam", "greedy", "sample")
LARGEST_INT = 2**31 - 1
# The paper's cap on the output (section 6.1): source length + 50.
EXTRA_LENGTH = 50

_BEAM, _SAMPLE = ("beam",), ("sample",)


class Option(NamedTuple):
    """An option of decoding.

    name: str; on the command line with dashes.
    strategies: tuple of str, those that take it.
    default: int, float, or nested tuple of ints of the rank of `shape`.
    range: the smallest and the largest it may be; Python refuses others, a
        graph takes the nearest. None of ids.
    trial: another value than the default, to try exports with. Those of all
        options are a sensible call together.
    help: str, what the command says of it; `{default}` stands for that.
    rule: str, what the metadata of exports says of it.
    shape: tuple of axis names; () is a number.
    words: what the command calls the values, a dict of str to int; of a flag,
        which is on where it is named, it is empty.
    """

    name: str
    strategies: tuple
    default: object
    range: object
    trial: object
    help: str
    rule: str
    shape: tuple = ()
    words: object = None

    @property
    def dtype(self):
        """The type of the input of a graph, str."""
        return "float32" if isinstance(self.default, float) else "int32"

    @property
    def is_flag(self):
        """Whether it is on or off."""
        return self.words == {}


# In the order of the inputs of each graph, which clients rely on.
OPTIONS = (
    Option(
        "beam_size",
        _BEAM,
        default=4,
        range=(1, LARGEST_INT),
        trial=6,
        help="width, default {default}",
        rule="how many hypotheses of a row are kept in each step",
    ),
    Option(
        "num_hypotheses",
        _BEAM,
        default=1,
        range=(1, LARGEST_INT),
        trial=2,
        help="beam: translations to give of each line, default {default}",
        rule="how many hypotheses of a row are given, at most beam_size",
    ),
    Option(
        "length_penalty",
        _BEAM,
        default=0.6,
        range=(-10.0, 10.0),
        trial=-0.5,
        help="exponent of the length penalty, default {default}; 0 turns it "
        "off, more favours longer translations",
        rule="beam: score = log-probability / ((5 + length) / 6) ^ "
        "length_penalty; with length_penalty_form 1 / length ^ "
        "length_penalty",
    ),
    Option(
        "temperature",
        _SAMPLE,
        default=1.0,
        range=(0.0, 100.0),
        trial=0.7,
        help="divides the logits, default {default}: below, the likely "
        "becomes likelier; 0 always takes the likeliest",
        rule="divides the logits; 0 takes the likeliest id",
    ),
    Option(
        "top_k",
        _SAMPLE,
        default=0,
        range=(0, LARGEST_INT),
        trial=5,
        help="draw from the N likeliest pieces only, default {default}: all",
        rule="only so many of the likeliest ids may be drawn; 0 is off",
    ),
    Option(
        "top_p",
        _SAMPLE,
        default=1.0,
        range=(1e-6, 1.0),
        trial=0.8,
        help="draw only from the likeliest pieces that together have this "
        "probability, default {default}: all",
        rule="only the likeliest ids that together have this probability "
        "may be drawn; 1 is off",
    ),
    Option(
        "max_length",
        STRATEGIES,
        default=-1,
        range=(-1, LARGEST_INT),
        trial=13,
        help="most pieces of a translation, the end of the sentence "
        f"counted, default {{default}}: source + {EXTRA_LENGTH}",
        rule=f"-1: ids of the source row other than pad, plus {EXTRA_LENGTH}",
    ),
    Option(
        "min_length",
        STRATEGIES,
        default=0,
        range=(0, LARGEST_INT),
        trial=11,
        help="fewest pieces of a translation, its end counted, default "
        "{default}",
        rule="eos is not allowed earlier",
    ),
    Option(
        "length_penalty_form",
        _BEAM,
        default=0,
        range=(0, 1),
        trial=1,
        help="gnmt: ((5 + length) / 6) ^ X, the default; power: length ^ X, "
        "as CTranslate2, fairseq, Marian and Hugging Face have it",
        rule="which formula length_penalty is of",
        words={"gnmt": 0, "power": 1},
    ),
    Option(
        "coverage_penalty",
        _BEAM,
        default=0.0,
        range=(0.0, 10.0),
        trial=0.4,
        help="how much to punish that part of the source is left out, "
        "default {default}: off",
        rule="beam: added to the score, coverage_penalty * sum over source "
        "positions of log(min(1, attention to it, summed over the "
        "output)); positions without any attention do not count",
    ),
    Option(
        "early_stopping",
        _BEAM,
        default=0,
        range=(0, 1),
        trial=1,
        help="stop a line once as many translations as the beam is wide are "
        "finished, though others might still beat them",
        rule="1: a row stops once beam_size hypotheses have finished; see stop",
        words={},
    ),
    Option(
        "no_repeat_ngram_size",
        STRATEGIES,
        default=0,
        range=(0, LARGEST_INT),
        trial=2,
        help="no N pieces in a row may occur twice in a translation, "
        "default {default}: off",
        rule="no so many ids in a row occur twice; 0 is off",
    ),
    Option(
        "repetition_penalty",
        STRATEGIES,
        default=1.0,
        range=(0.01, 100.0),
        trial=1.3,
        help="above 1 makes pieces that occurred less likely, default "
        "{default}: off",
        rule="logits of ids generated before are divided by it, or "
        "multiplied if below 0",
    ),
    Option(
        "target_prefix",
        STRATEGIES,
        default=((),),
        range=None,
        trial=((5, 6),),
        help="how every translation must begin",
        rule="(rows, P): ids that each row generates first, padded with "
        "pad; (1, P) for all rows",
        shape=("prefixes", "prefix"),
    ),
    Option(
        "forbidden_ids",
        STRATEGIES,
        default=(),
        range=None,
        trial=tuple(range(260, 280)),
        help="pieces that are never generated, default none",
        rule="never generated; nor are pad, bos and ids that the target "
        "tokenizer does not know",
        shape=("forbidden",),
    ),
)
BY_NAME = {option.name: option for option in OPTIONS}
DEFAULTS = {option.name: option.default for option in OPTIONS}
RANGES = {option.name: option.range for option in OPTIONS if option.range}


def options_of(*strategies):
    """Lists the options that any of some strategies takes, in order."""
    return [
        option
        for option in OPTIONS
        if any(strategy in option.strategies for strategy in strategies)
    ]
