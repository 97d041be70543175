"""An oracle for the searches: looks at every sentence of a small table.

A table holds logits `(L, V, V)`: position of the last id, last id, next id.
Everything here is NumPy in float64 and shares no code with the package.
"""

from typing import NamedTuple

import numpy as np

BOS, EOS = 1, 2


class Found(NamedTuple):
    """One hypothesis: generated ids, eos included, and its score."""

    ids: tuple
    score: float


def exhaustive_search(
    table, cap, *, alpha=0.0, min_length=0, forbidden_ids=(0, BOS)
):
    """Lists all sentences of at most `cap` ids.

    Returns:
        Two lists of `Found`, each best first: the finished hypotheses, and
        those that reach the cap without eos.
    """
    finished, cut = [], []

    def extend(ids, log_prob):
        position = len(ids)
        if position == cap:
            cut.append((ids, log_prob))
            return
        log_probs = log_softmax(table[position, ids[-1] if ids else BOS])
        for token_id, step in enumerate(log_probs):
            if token_id in forbidden_ids or np.isneginf(step):
                continue
            if token_id != EOS:
                extend((*ids, token_id), log_prob + step)
            elif position + 1 >= min_length:
                finished.append(((*ids, EOS), log_prob + step))

    extend((), 0.0)
    return _ranked(finished, alpha), _ranked(cut, alpha)


def log_probability(table, ids):
    """Scores given ids by teacher forcing, under the whole vocabulary."""
    previous = (BOS, *ids)
    return sum(
        log_softmax(table[position, previous[position]])[token_id]
        for position, token_id in enumerate(ids)
    )


def penalty(length, alpha):
    return ((5.0 + length) / 6.0) ** alpha


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    highest = logits.max()
    if np.isneginf(highest):
        return logits
    shifted = logits - highest
    with np.errstate(divide="ignore"):
        return shifted - np.log(np.exp(shifted).sum())


def _ranked(pairs, alpha):
    found = [
        Found(ids, log_prob / penalty(len(ids), alpha))
        for ids, log_prob in pairs
    ]
    return sorted(found, key=lambda each: -each.score)
