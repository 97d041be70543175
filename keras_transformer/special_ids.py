"""The ids that a vocabulary keeps for itself."""

# As arguments and as attributes of models and tokenizers.
SPECIAL_IDS = ("pad_id", "bos_id", "eos_id", "unk_id")


def check_special_ids(special_ids, vocab_size):
    """Refuses special ids outside the vocabulary, or two that are one.

    Args:
        special_ids: dict of name to id.
        vocab_size: int.

    Raises:
        ValueError: naming the id, or all of them.
    """
    for name, value in special_ids.items():
        if not isinstance(value, int) or not 0 <= value < vocab_size:
            raise ValueError(
                f"{name} must be an id of the vocabulary, an int in "
                f"[0, {vocab_size}), got {name}={value!r}"
            )
    if len(set(special_ids.values())) < len(special_ids):
        raise ValueError(
            f"special ids must differ from each other, got {special_ids}"
        )
