"""`keras-transformer evaluate`: BLEU, chrF and TER of a trained model."""

import json
import logging

from sacrebleu.metrics import BLEU, CHRF, TER

from keras_transformer.commands.arguments import (
    add_corpus,
    add_decoding,
    decoding_options,
    read_corpus,
)
from keras_transformer.decoding import STRATEGIES
from keras_transformer.translator import Translator

# A row of the table holds sources of up to so many words.
_WORDS = (5, 10, 15, 20, 30, 40, 60, 80, float("inf"))

_logger = logging.getLogger(__name__)


def add_parser(subparsers):
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "evaluate",
        help="score a model with BLEU, chrF and TER",
        description="Translates the source and compares with the target. "
        "Prints for each strategy BLEU, chrF and TER with the signatures of "
        "sacrebleu, then BLEU by the length of the source, and last a line of "
        'JSON: {"bleu": {"greedy": 34.2, "beam": 35.1}, "chrf": {..}, "ter": '
        "{..}}.",
        allow_abbrev=False,
    )
    parser.add_argument("model", metavar="RUN", help="folder of the model")
    add_corpus(parser)
    parser.add_argument(
        "--strategy",
        choices=("both", *STRATEGIES),
        default="both",
        help="default %(default)s: greedy and beam",
    )
    add_decoding(parser)
    parser.add_argument(
        "--tokenize",
        choices=sorted(BLEU.TOKENIZERS),
        default="13a",
        help="how sacrebleu splits words, default %(default)s; none for text "
        "that is split already",
    )
    parser.add_argument(
        "--lowercase", action="store_true", help="compare in lower case"
    )
    return parser


def run(arguments, output):
    """Scores with each strategy."""
    corpus = read_corpus(arguments, keep_blank=True)
    translator = Translator.load(arguments.model)
    calls = _calls(arguments)
    for options in calls.values():  # Refuses options before it translates.
        translator.hypotheses([], **options)
    metrics = _metrics(arguments)
    scores = {name: {} for name in metrics}
    found = {}
    for strategy, options in calls.items():
        _logger.info("translating %d lines: %s", len(corpus), strategy)
        found[strategy] = translator.translate(corpus.source, **options)
        for name, metric in metrics.items():
            score = metric.corpus_score(found[strategy], [corpus.target])
            signature = str(metric.get_signature())
            print(
                f"{strategy}: {score.format(signature=signature)}",
                file=output,
                flush=True,
            )
            scores[name][strategy] = round(score.score, 2)
    _print_by_length(metrics["bleu"], corpus, found, output)
    print(json.dumps(scores), file=output)


def _metrics(arguments):
    lowercase = arguments.lowercase
    return {
        "bleu": BLEU(
            tokenize=arguments.tokenize,
            lowercase=lowercase,
            # Else it warns that the text looks tokenised.
            force=arguments.tokenize == "none",
        ),
        "chrf": CHRF(lowercase=lowercase),
        "ter": TER(case_sensitive=not lowercase),
    }


def _print_by_length(bleu, corpus, found, output):
    """Prints BLEU of each strategy for short sources, longer ones, ..."""
    print("BLEU by words of the source:", file=output)
    print("words", "lines", *found, sep="\t", file=output)
    lengths = [len(line.split()) for line in corpus.source]
    least = 0
    for most in _WORDS:
        rows = [i for i, n in enumerate(lengths) if least <= n <= most]
        if rows:
            scores = [
                bleu.corpus_score(
                    [lines[i] for i in rows],
                    [[corpus.target[i] for i in rows]],
                ).score
                for lines in found.values()
            ]
            span = f"{least}-{most}" if most < float("inf") else f"{least}-"
            print(
                span,
                len(rows),
                *(f"{score:.2f}" for score in scores),
                sep="\t",
                file=output,
            )
        least = most + 1


def _calls(arguments):
    """The keyword arguments of `translate` for each strategy."""
    if arguments.strategy == "both":
        options = {
            "greedy": decoding_options(arguments, "greedy"),
            "beam": decoding_options(arguments),
        }
    else:
        options = {arguments.strategy: decoding_options(arguments)}
    return {
        strategy: {
            "strategy": strategy,
            "batch_size": arguments.batch_size,
            **given,
        }
        for strategy, given in options.items()
    }
