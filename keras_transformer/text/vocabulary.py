"""Learning the pieces of a vocabulary (paper, section 5.1)."""

import io
import re

import sentencepiece

_SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")


def learn_vocabulary(
    lines,
    vocab_size,
    *,
    model_type="bpe",
    byte_fallback=True,
    normalization="nmt_nfkc",
    character_coverage=1.0,
    split_digits=False,
    user_defined_symbols=(),
    pad_id=0,
    bos_id=1,
    eos_id=2,
    unk_id=3,
):
    """Trains a SentencePiece model; the same lines give the same model.

    Args:
        lines: iterable of str.
        vocab_size: int, number of pieces, special and byte pieces included.
        model_type: `"bpe"` (the paper's) or `"unigram"`.
        byte_fallback: whether characters outside the vocabulary are spelt in
            256 byte pieces, so that no text is lost.
        normalization: a rule of SentencePiece: `"nmt_nfkc"`, `"nfkc"`, the
            same with `"_cf"` to fold case, or `"identity"`, which keeps
            compatibility characters as they are, and tabs and line ends
            apart from blanks.
        character_coverage: float in [0.98, 1], share of the characters of
            the text that get a piece of their own.
        split_digits: whether every digit is a piece of its own.
        user_defined_symbols: strings that are always one piece, also when a
            user types them.
        pad_id: int, id of the padding; -1 for none.
        bos_id: int, id that begins a target; -1 for none.
        eos_id: int, id that ends a sentence; -1 for none.
        unk_id: int, id of unknown characters.

    Returns:
        Bytes of the model.

    Raises:
        ValueError: there is no text, it does not allow `vocab_size` (the
            message names the limit), or another argument is refused.
    """
    lines = [line for line in lines if line.strip()]
    if not lines:
        raise ValueError(
            "a vocabulary needs text to learn from, got no line that is not "
            "blank"
        )
    _check_special_ids(vocab_size, pad_id, bos_id, eos_id, unk_id)
    _check_symbols(user_defined_symbols)
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=vocab_size,
            model_type=model_type,
            byte_fallback=byte_fallback,
            normalization_rule_name=normalization,
            character_coverage=character_coverage,
            split_digits=split_digits,
            user_defined_symbols=list(user_defined_symbols),
            pad_id=pad_id,
            bos_id=bos_id,
            eos_id=eos_id,
            unk_id=unk_id,
            # By default longer lines are left out without a word.
            max_sentence_length=1 << 24,
            # The number of threads changes what unigram training gives.
            num_threads=16,
            minloglevel=2,
        )
    except (RuntimeError, ValueError) as error:
        raise ValueError(_explain(error, vocab_size)) from error
    return model.getvalue()


def _check_special_ids(vocab_size, pad_id, bos_id, eos_id, unk_id):
    if unk_id == -1:
        raise ValueError("unk_id: a vocabulary needs one, got -1 for none")
    ids = {
        "pad_id": pad_id,
        "bos_id": bos_id,
        "eos_id": eos_id,
        "unk_id": unk_id,
    }
    used = [token_id for token_id in ids.values() if token_id != -1]
    inside = all(0 <= token_id < vocab_size for token_id in used)
    if not inside or len(set(used)) < len(used):
        raise ValueError(
            "pad_id, bos_id, eos_id and unk_id: expected different ids below "
            f"vocab_size={vocab_size}, or -1 for none, got {ids}"
        )


def _check_symbols(user_defined_symbols):
    if isinstance(user_defined_symbols, str):
        raise ValueError(
            "user_defined_symbols: expected a list of str, got "
            f"{user_defined_symbols!r}"
        )
    for symbol in user_defined_symbols:
        if symbol in _SPECIAL_PIECES:
            raise ValueError(
                f"user_defined_symbols: {symbol!r} is a special piece, which "
                "no text may become"
            )


def _explain(error, vocab_size):
    """The reason of SentencePiece in terms of our arguments."""
    reason = str(error)
    if found := re.search(r"too high.*<= (\d+)", reason):
        return (
            f"vocab_size: the text allows {found[1]} pieces at most, got "
            f"{vocab_size}"
        )
    if found := re.search(r"required_chars\. \d+ vs (\d+)", reason):
        return (
            "vocab_size: the characters of the text, the byte pieces and the "
            f"special pieces need {found[1]} at least, got {vocab_size}"
        )
    return f"SentencePiece could not learn a vocabulary: {reason.strip()}"
