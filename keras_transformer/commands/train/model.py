"""What `keras-transformer train` trains: tokenizers and a model."""

import logging

from keras_transformer.commands.train.arguments import (
    MODEL_OPTIONS,
    keywords,
)
from keras_transformer.special_ids import SPECIAL_IDS
from keras_transformer.text import Tokenizer
from keras_transformer.transformer import BASE, BIG, TINY, Transformer
from keras_transformer.translator import Translator

_SIZES = {"tiny": TINY, "base": BASE, "big": BIG}
_VOCAB_SIZE = 10_000
# What a saved model has already. Its dropout may be another.
_DECIDED = (
    *("vocab_size", "model_type", "separate_vocabularies"),
    *("source_tokenizer", "target_tokenizer", "size"),
    *(name for name in MODEL_OPTIONS if name != "dropout"),
)

_logger = logging.getLogger(__name__)


def make_translator(settings, corpus):
    """Loads the model to start from, or makes an untrained one.

    Args:
        settings: dict, see `settings_of`.
        corpus: `ParallelCorpus` to learn tokenizers from.

    Returns:
        `Translator`, without facts about a training.

    Raises:
        ValueError: if a file or an argument does not fit.
    """
    start = settings["start"]
    if start is None:
        tokenizers = make_tokenizers(
            corpus, **keywords(settings, make_tokenizers)
        )
        transformer = make_transformer(
            *tokenizers,
            **keywords(settings, make_transformer),
            **{name: settings[name] for name in MODEL_OPTIONS},
        )
        return Translator(transformer, *tokenizers)
    for name in _DECIDED:
        if settings[name] not in (None, False):
            raise ValueError(
                f"--{name.replace('_', '-')} is decided by the model of "
                f"--from {start}; expected one of the two"
            )
    return _load(start, **keywords(settings, _load))


def _load(start, *, dropout, mixed_precision):
    saved = Translator.load(start)
    config = saved.transformer.get_config()
    if dropout is not None:
        config["dropout"] = dropout
    if mixed_precision:
        config["dtype"] = "mixed_bfloat16"
    transformer = Transformer.from_config(config)
    transformer.set_weights(saved.transformer.get_weights())
    _logger.info(
        "starting from %s, %d parameters", start, transformer.count_params()
    )
    return Translator(
        transformer, saved.source_tokenizer, saved.target_tokenizer
    )


def make_tokenizers(
    corpus,
    *,
    vocab_size,
    model_type,
    separate_vocabularies,
    source_tokenizer,
    target_tokenizer,
):
    """Loads or learns the tokenizers.

    Returns:
        Source and target `Tokenizer`, one object if they are the same.

    Raises:
        ValueError: if a file or a setting does not fit.
    """
    if source_tokenizer:
        source = _load_tokenizer(source_tokenizer)
        target = _load_tokenizer(target_tokenizer or source_tokenizer)
        same = source.model_proto == target.model_proto
        return source, source if same else target
    options = {
        "vocab_size": _VOCAB_SIZE if vocab_size is None else vocab_size,
        "model_type": model_type or "bpe",
    }
    _logger.info("learning the vocabulary")
    if separate_vocabularies:
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


def make_transformer(
    source_tokenizer, target_tokenizer, *, size, mixed_precision, **replaced
):
    """Makes the `Transformer` whose ids are those of the tokenizers.

    What is `replaced` and not None takes the place of what `size` says.
    """
    shared = source_tokenizer is target_tokenizer
    if replaced["tying"] == "all" and not shared:
        raise ValueError(
            "--tying all needs one vocabulary for both languages; expected "
            "target or none"
        )
    options = {"tying": "all" if shared else "target", **_SIZES[size]}
    options.update({n: v for n, v in replaced.items() if v is not None})
    for name in SPECIAL_IDS:
        options[name] = getattr(target_tokenizer, name)
    if mixed_precision:
        options["dtype"] = "mixed_bfloat16"
    transformer = Transformer(
        source_tokenizer.vocab_size, target_tokenizer.vocab_size, **options
    )
    _logger.info("the model has %d parameters", transformer.count_params())
    return transformer
