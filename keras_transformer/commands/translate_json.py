"""What `keras-transformer translate --json` tells of a line."""

import json
import math

import numpy as np

JSON_HELP = """\
The object that --json gives for a line:

  source         the line
  source_tokens  its pieces, and the end of the sentence
  hypotheses     list, best first, of objects:
    text             the translation
    score            what they are ranked by; greedy, sample: log-probability
    finished         false if it was cut at its largest length
    tokens           its pieces, and the end of the sentence if finished
    token_ids        the ids of tokens
    token_log_probs  the log-probability of each, in nats
    alignment        for each the place in source_tokens it attended to most
    attention        for each how much it attended to each of source_tokens

The list is empty where the options leave no translation.
"""


def as_json(translator, lines, found):
    """Describes lines and their translations.

    Args:
        translator: `Translator`.
        lines: list of str.
        found: what its `hypotheses` gave for them, log-probabilities and
            attention included.

    Yields:
        str for each line: valid JSON, whatever the numbers, without newline.
    """
    sources = translator.tokenize_source(lines)
    for line, ids, row in zip(lines, sources, found, strict=True):
        hypotheses = [
            _as_object(hypothesis, translator.target_tokenizer)
            for hypothesis in row
            if math.isfinite(hypothesis.score)
        ]
        fields = {
            "source": line,
            "source_tokens": translator.source_tokenizer.pieces(ids),
            "hypotheses": hypotheses,
        }
        yield json.dumps(fields, ensure_ascii=False, allow_nan=False)


def _as_object(hypothesis, tokenizer):
    return {
        "text": hypothesis.text,
        "score": round(hypothesis.score, 6),
        "finished": hypothesis.finished,
        "tokens": tokenizer.pieces(hypothesis.token_ids),
        "token_ids": hypothesis.token_ids,
        "token_log_probs": _rounded(hypothesis.token_log_probs, 6),
        "alignment": hypothesis.attention.argmax(axis=1).tolist(),
        "attention": _rounded(hypothesis.attention, 4),
    }


def _rounded(array, digits):
    """Gives nested lists of floats; null for what JSON cannot hold."""
    # As float64, or the rounded numbers would be long in decimal.
    rounded = np.round(array.astype("float64"), digits)
    return np.where(np.isfinite(rounded), rounded, None).tolist()
