"""`keras-transformer evaluate`: BLEU of a trained model."""

import json
import logging

from sacrebleu.metrics import BLEU

from keras_transformer.commands.arguments import (
    add_corpus,
    add_decoding,
    decoding_options,
    read_corpus,
)
from keras_transformer.decoding import STRATEGIES
from keras_transformer.translator import Translator

_logger = logging.getLogger(__name__)


def add_parser(subparsers):
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "evaluate",
        help="score a model with BLEU",
        description="Translates the source and compares with the target. "
        "Prints a line for each strategy, BLEU with the signature of "
        "sacrebleu, and last a line of JSON: "
        '{"bleu": {"greedy": 34.2, "beam": 35.1}}.',
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
    scores = {}
    for strategy, options in calls.items():
        _logger.info("translating %d lines: %s", len(corpus), strategy)
        found = translator.translate(corpus.source, **options)
        metric = BLEU(
            tokenize=arguments.tokenize, lowercase=arguments.lowercase
        )
        score = metric.corpus_score(found, [corpus.target])
        signature = metric.get_signature()
        print(
            f"{strategy}: {score.format(signature=str(signature))}",
            file=output,
            flush=True,
        )
        scores[strategy] = round(score.score, 2)
    print(json.dumps({"bleu": scores}), file=output)


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
