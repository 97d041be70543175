"""What `keras-transformer train` trains: tokenizers and a model."""

import logging

from keras_transformer import transformer as sizes
from keras_transformer.commands.train_arguments import MODEL_OPTIONS
from keras_transformer.special_ids import SPECIAL_IDS
from keras_transformer.text import Tokenizer
from keras_transformer.translator import Translator

_VOCAB_SIZE = 10_000
# What a saved model has already. Its dropout may be another.
_DECIDED = (
    *("vocab_size", "model_type", "separate_vocabularies"),
    *("source_tokenizer", "target_tokenizer", "size"),
    *(name for name in MODEL_OPTIONS if name != "dropout"),
)

_logger = logging.getLogger(__name__)


def make_translator(arguments, corpus):
    """Loads the model to start from, or makes an untrained one.

    Args:
        arguments: those of the command.
        corpus: `ParallelCorpus` to learn tokenizers from.

    Returns:
        `Translator`, without facts about a training.

    Raises:
        ValueError: if a file or an argument does not fit.
    """
    if arguments.start is None:
        tokenizers = make_tokenizers(arguments, corpus)
        return Translator(make_transformer(arguments, *tokenizers), *tokenizers)
    for name in _DECIDED:
        if getattr(arguments, name) not in (None, False):
            raise ValueError(
                f"--{name.replace('_', '-')} is decided by the model of "
                f"--from {arguments.start}; expected one of the two"
            )
    saved = Translator.load(arguments.start)
    config = saved.transformer.get_config()
    if arguments.dropout is not None:
        config["dropout"] = arguments.dropout
    if arguments.mixed_precision:
        config["dtype"] = "mixed_bfloat16"
    transformer = sizes.Transformer.from_config(config)
    transformer.set_weights(saved.transformer.get_weights())
    _logger.info(
        "starting from %s, %d parameters",
        arguments.start,
        transformer.count_params(),
    )
    return Translator(
        transformer, saved.source_tokenizer, saved.target_tokenizer
    )


def make_tokenizers(arguments, corpus):
    """Loads or learns the tokenizers.

    Args:
        arguments: those of the command.
        corpus: `ParallelCorpus` to learn from.

    Returns:
        Source and target `Tokenizer`, one object if they are the same.

    Raises:
        ValueError: if a file or an argument does not fit.
    """
    if arguments.source_tokenizer:
        paths = [arguments.source_tokenizer, arguments.target_tokenizer]
        source, target = (_load_tokenizer(path or paths[0]) for path in paths)
        same = source.model_proto == target.model_proto
        return source, source if same else target
    options = {
        "vocab_size": (
            _VOCAB_SIZE
            if arguments.vocab_size is None
            else arguments.vocab_size
        ),
        "model_type": arguments.model_type or "bpe",
    }
    _logger.info("learning the vocabulary")
    if arguments.separate_vocabularies:
        return tuple(
            Tokenizer.train_from_lines(lines, **options)
            for lines in (corpus.source, corpus.target)
        )
    tokenizer = Tokenizer.train_from_lines(
        [*corpus.source, *corpus.target], **options
    )
    return tokenizer, tokenizer


def _load_tokenizer(path):
    tokenizer = Tokenizer.load(path)
    for name in SPECIAL_IDS:
        if getattr(tokenizer, name) < 0:
            raise ValueError(
                f"{path}: the tokenizer has no {name}, which the model needs"
            )
    return tokenizer


def make_transformer(arguments, source_tokenizer, target_tokenizer):
    """Makes the `Transformer` whose ids are those of the tokenizers."""
    shared = source_tokenizer is target_tokenizer
    if arguments.tying == "all" and not shared:
        raise ValueError(
            "--tying all needs one vocabulary for both languages; expected "
            "target or none"
        )
    options = dict(getattr(sizes, arguments.size.upper()))
    for name in MODEL_OPTIONS:
        if getattr(arguments, name) is not None:
            options[name] = getattr(arguments, name)
    options.setdefault("tying", "all" if shared else "target")
    for name in SPECIAL_IDS:
        options[name] = getattr(target_tokenizer, name)
    if arguments.mixed_precision:
        options["dtype"] = "mixed_bfloat16"
    transformer = sizes.Transformer(
        source_tokenizer.vocab_size, target_tokenizer.vocab_size, **options
    )
    _logger.info("the model has %d parameters", transformer.count_params())
    return transformer
