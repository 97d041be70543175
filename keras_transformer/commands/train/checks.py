"""What `keras-transformer train` refuses before it reads a text."""

import importlib.util


def check(arguments):
    """Raises ValueError for what would be ignored, or found out late."""
    rates = arguments.peak_rate, arguments.factor
    if arguments.start and rates == (None, None):
        raise ValueError(
            f"--from {arguments.start} begins a new schedule; expected "
            "--peak-rate or --factor too"
        )
    if not 0 <= arguments.ema < 1:
        raise ValueError(f"--ema must be in [0, 1), got {arguments.ema}")
    for name, least in (
        ("epochs", 1),
        ("steps_per_epoch", 1),
        ("steps_per_update", 1),
        ("patience", 1),
        ("bleu_every", 1),
        ("average", 1),
        ("keep", 0),
    ):
        value = getattr(arguments, name)
        if value is not None and value < least:
            raise ValueError(
                f"{_option(name)} must be at least {least}, got {value}"
            )
    for name in ("patience", "bleu_every"):
        if getattr(arguments, name) and not (
            arguments.valid_source or arguments.valid_tsv
        ):
            raise ValueError(
                f"{_option(name)} needs validation; expected --valid-source "
                "and --valid-target, or --valid-tsv"
            )
    every = arguments.bleu_every or 1
    if arguments.patience and arguments.patience < every:
        raise ValueError(
            f"--patience must be at least --bleu-every {every}, got "
            f"{arguments.patience}: in between no epoch can be better"
        )
    if arguments.tensorboard and not importlib.util.find_spec("tensorboard"):
        raise ValueError(
            "--tensorboard needs TensorBoard: pip install tensorboard"
        )
    _check_tokenizer(arguments)


def _check_tokenizer(arguments):
    learned = ("vocab_size", "model_type", "separate_vocabularies")
    if arguments.source_tokenizer:
        for name in learned:
            if getattr(arguments, name) not in (None, False):
                raise ValueError(
                    f"{_option(name)} is for tokenizers that are learned; "
                    "expected it without --source-tokenizer"
                )
    elif arguments.target_tokenizer:
        raise ValueError(
            "--target-tokenizer is given, expected --source-tokenizer too"
        )


def _option(name):
    return f"--{name.replace('_', '-')}"
