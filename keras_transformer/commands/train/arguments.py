"""The arguments of `keras-transformer train`."""

import inspect

from sacrebleu.metrics import BLEU

from keras_transformer.commands.arguments import add_corpus
from keras_transformer.commands.train.schedule import add_schedule

# Arguments that replace what --size says, by their names in `Transformer`.
MODEL_OPTIONS = (
    "num_layers",
    "d_model",
    "num_heads",
    "d_ff",
    "dropout",
    "norm_first",
    "tying",
)


def settings_of(arguments):
    """Gives what argparse found as a dict, with the size of a new model."""
    size = arguments.size or (None if arguments.start else "tiny")
    return {**vars(arguments), "size": size}


def keywords(settings, function):
    """Gives those settings that a function takes as keywords only."""
    return {
        name: settings[name]
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def add_parser(subparsers):
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "train",
        help="train a model on parallel text",
        description="Trains a Transformer and writes it, its tokenizers and "
        "the facts of the training to the folder RUN, which must not exist. "
        "The defaults suit some thirty thousand pairs of sentences and a CPU. "
        "After each epoch it writes a checkpoint to RUN.checkpoints; if it is "
        "interrupted, even killed, the same command goes on from there and "
        "ends with the same weights. "
        "Prints a line of JSON: the facts of the epoch that was kept, which "
        "is the best in validation, or the last.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--output", required=True, metavar="RUN", help="folder to write"
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="RUN",
        help="start from the weights, sizes and tokenizers of a saved model, "
        "with a new schedule, whose --peak-rate or --factor must be given",
    )
    text = parser.add_argument_group("text")
    add_corpus(text)
    add_corpus(text, "valid-", " in validation")
    _add_tokenizer(parser.add_argument_group("tokenizer"))
    _add_model(parser.add_argument_group("model"))
    _add_training(parser.add_argument_group("training"))
    add_schedule(parser.add_argument_group("learning rate"))
    _add_validation(parser.add_argument_group("validation and checkpoints"))
    return parser


def _add_tokenizer(group):
    group.add_argument(
        "--vocab-size",
        type=int,
        help="pieces to learn, default 10000; of each side if separate",
    )
    group.add_argument(
        "--model-type", choices=("bpe", "unigram"), help="default bpe"
    )
    group.add_argument(
        "--separate-vocabularies",
        action="store_true",
        help="learn one for each side instead of one for both",
    )
    group.add_argument(
        "--source-tokenizer",
        metavar="FILE",
        help="a SentencePiece model to use instead of learning one",
    )
    group.add_argument(
        "--target-tokenizer",
        metavar="FILE",
        help="likewise; default the same as the source",
    )


def _add_model(group):
    group.add_argument(
        "--size",
        choices=("tiny", "base", "big"),
        help="default tiny; base and big are the paper's",
    )
    for name in ("--num-layers", "--d-model", "--num-heads", "--d-ff"):
        group.add_argument(name, type=int, help="replaces that of --size")
    group.add_argument("--dropout", type=float, help="replaces that of --size")
    group.add_argument(
        "--norm-first",
        action="store_true",
        default=None,
        help="pre-norm instead of the paper's post-norm",
    )
    group.add_argument(
        "--tying",
        choices=("all", "target", "none"),
        help="embeddings that are one matrix with the output projection; "
        "default all for one vocabulary, target for two",
    )


def _add_training(group):
    group.add_argument(
        "--epochs", type=int, default=20, help="default %(default)s"
    )
    group.add_argument(
        "--steps-per-epoch",
        type=int,
        metavar="N",
        help="batches after which an epoch ends, with its validation and "
        "checkpoint; default as many as hold every pair once",
    )
    group.add_argument(
        "--batch-tokens",
        type=int,
        default=2048,
        help="most positions of a batch on either side, padding included, "
        "default %(default)s",
    )
    group.add_argument(
        "--steps-per-update",
        type=int,
        default=1,
        metavar="N",
        help="batches whose gradients one update adds up, default %(default)s",
    )
    group.add_argument(
        "--max-length",
        type=int,
        default=256,
        help="pairs with more pieces on a side are left out, default "
        "%(default)s",
    )
    group.add_argument(
        "--bpe-dropout",
        type=float,
        default=0.0,
        metavar="RATE",
        help="cut words into other pieces each time, by leaving out merges "
        "with this probability, such as 0.05; default %(default)s",
    )
    group.add_argument(
        "--label-smoothing",
        type=float,
        default=0.1,
        help="default %(default)s",
    )
    group.add_argument(
        "--ema",
        type=float,
        default=0.0,
        metavar="MOMENTUM",
        help="keep a moving average of the weights, such as 0.998; default "
        "%(default)s: off",
    )
    group.add_argument(
        "--mixed-precision",
        action="store_true",
        help="compute in bfloat16, for hardware that is faster at it",
    )
    group.add_argument(
        "--seed", type=int, default=0, help="default %(default)s"
    )
    group.add_argument(
        "--verbose",
        type=int,
        choices=(0, 1, 2),
        default=2,
        help="progress on standard error: 0 none, 1 a bar, 2 a line an epoch "
        "(default)",
    )


def _add_validation(group):
    group.add_argument(
        "--bleu-every",
        type=int,
        metavar="N",
        help="translate the validation set after each N epochs; the best "
        "epoch is then that of the highest BLEU, not lowest perplexity",
    )
    group.add_argument(
        "--bleu-tokenize",
        choices=sorted(BLEU.TOKENIZERS),
        default="13a",
        help="how sacrebleu splits words for that, default %(default)s; none "
        "for text that is split already",
    )
    group.add_argument(
        "--patience",
        type=int,
        help="stop after so many epochs without a better validation",
    )
    group.add_argument(
        "--average",
        type=int,
        default=1,
        metavar="N",
        help="end with the mean of the weights of the N best epochs, default "
        "%(default)s",
    )
    group.add_argument(
        "--select",
        choices=("best", "last"),
        default="best",
        help="end with the best epochs in validation (default), or with the "
        "last, as without validation",
    )
    group.add_argument(
        "--keep",
        type=int,
        default=0,
        metavar="N",
        help="leave the last N checkpoints in RUN.checkpoints when all is "
        "done, default %(default)s",
    )
    group.add_argument(
        "--tensorboard",
        metavar="FOLDER",
        help="write loss, accuracy, learning rate, BLEU and translations "
        "there, for TensorBoard",
    )
