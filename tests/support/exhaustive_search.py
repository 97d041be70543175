"""Oracles of the searches: every sentence of a table, a plain beam, a path.

A table holds logits `(L, V, V)`: position of the last id, last id, next id;
the last position stands for all beyond it. Attention is `(L, V, H, S)`, by
position and last id. Everything here is NumPy in float64 and shares no code
with the package; options have the names that they have there.
"""

from typing import NamedTuple

import numpy as np

PAD, BOS, EOS = 0, 1, 2


class Found(NamedTuple):
    """One hypothesis: generated ids, eos included, and its score."""

    ids: tuple
    score: float


def exhaustive_search(table, cap, *, attention=None, **options):
    """Lists all sentences of at most `cap` ids.

    Returns:
        Two lists of `Found`, each best first: the finished hypotheses, and
        those that reach the cap without eos.
    """
    scoring, constraints = _split(options)
    finished, cut = sentences(table, cap, **constraints)
    return (
        ranked(finished, attention, **scoring),
        ranked(cut, attention, **scoring),
    )


def sentences(table, cap, **constraints):
    """As `exhaustive_search`, with log-probabilities and unsorted."""
    finished, cut = [], []

    def extend(ids, log_prob):
        if len(ids) == cap:
            cut.append(Found(ids, log_prob))
            return
        for token_id, step in next_ids(table, ids, **constraints):
            longer = (*ids, token_id)
            if token_id == EOS:
                finished.append(Found(longer, log_prob + step))
            else:
                extend(longer, log_prob + step)

    extend((), 0.0)
    return finished, cut


def plain_beam(
    table,
    cap,
    *,
    beam_size=4,
    num_hypotheses=1,
    early_stopping=False,
    attention=None,
    **options,
):
    """Searches with a beam of any width, up to the cap.

    Only `early_stopping` stops it before. Each step considers the `2K` best
    extensions, ends those of the best `K` that are eos, and goes on with the
    best `K` of the others.

    Returns:
        Two lists of `Found`, together at most `num_hypotheses`.
    """
    scoring, constraints = _split(options)
    alive, finished = [Found((), 0.0)], []
    for _ in range(cap):
        candidates = [
            Found((*ids, token_id), log_prob + step)
            for ids, log_prob in alive
            for token_id, step in next_ids(table, ids, **constraints)
        ]
        candidates.sort(key=lambda each: -each.score)
        ended = [each for each in candidates[:beam_size] if each.ids[-1] == EOS]
        finished += ranked(ended, attention, **scoring)
        alive = [
            each for each in candidates[: 2 * beam_size] if each.ids[-1] != EOS
        ][:beam_size]
        if early_stopping and len(finished) >= beam_size:
            break
    finished.sort(key=lambda each: -each.score)
    finished = finished[:num_hypotheses]
    cut = ranked(alive, attention, **scoring)
    return finished, cut[: num_hypotheses - len(finished)]


def plain_greedy(table, cap, **constraints):
    """Follows the likeliest id; scores are those of the unchanged logits.

    Returns:
        `Found`, or None at a dead end.
    """
    ids = ()
    while len(ids) < cap and EOS not in ids:
        candidates = next_ids(table, ids, **constraints)
        if not candidates:
            return None
        ids = (*ids, max(candidates, key=lambda each: each[1])[0])
    return Found(ids, log_probability(table, ids))


def next_ids(
    table,
    ids,
    *,
    min_length=0,
    forbidden_ids=(PAD, BOS),
    no_repeat_ngram_size=0,
    repetition_penalty=1.0,
    target_prefix=(),
):
    """Lists what may follow `ids`: pairs of an id and its log-probability."""
    logits = np.array(_at(table, ids), "float64")
    for token_id in set(ids) - {BOS}:
        if logits[token_id] > 0:
            logits[token_id] /= repetition_penalty
        else:
            logits[token_id] *= repetition_penalty
    log_probs = log_softmax(logits)
    start = [*target_prefix, PAD]
    start = start[: start.index(PAD)]
    if len(ids) < len(start):
        allowed = [start[len(ids)]]
    else:
        allowed = [
            token_id
            for token_id in range(len(log_probs))
            if token_id not in forbidden_ids
            and not (token_id == EOS and len(ids) + 1 < min_length)
            and not repeats(ids, token_id, no_repeat_ngram_size)
        ]
    return [
        (token_id, log_probs[token_id])
        for token_id in allowed
        if not np.isneginf(log_probs[token_id])
    ]


def repeats(ids, token_id, size):
    """Whether `token_id` would end an n-gram that `ids` holds already."""
    longer = (*ids, token_id)
    last = longer[len(longer) - size :]
    grams = [longer[i : i + size] for i in range(len(longer) - size)]
    return size > 0 and last in grams


def ranked(
    pairs,
    attention=None,
    *,
    length_penalty=0.0,
    length_penalty_form=0,
    coverage_penalty=0.0,
):
    """Turns log-probabilities into scores and puts the best first."""
    found = [
        Found(
            ids,
            log_prob / penalty(len(ids), length_penalty, length_penalty_form)
            + coverage_penalty * log_coverage(attention, ids),
        )
        for ids, log_prob in pairs
    ]
    return sorted(found, key=lambda each: -each.score)


def penalty(length, alpha, form=0):
    base = max(length, 1) if form == 1 else (5 + length) / 6
    return float(base) ** alpha


def log_coverage(attention, ids):
    """Sums log(min(attention, 1)) over what was attended to at all."""
    if attention is None:
        return 0.0
    coverage = sum(
        np.asarray(_at(attention, ids[:place]), "float64").mean(axis=0)
        for place in range(len(ids))
    )
    coverage = np.atleast_1d(coverage)
    return np.log(np.minimum(coverage[coverage > 0], 1.0)).sum()


def log_probability(table, ids):
    """Scores given ids by teacher forcing, under the whole vocabulary."""
    return sum(
        log_softmax(_at(table, ids[:place]))[token_id]
        for place, token_id in enumerate(ids)
    )


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    highest = logits.max()
    if np.isneginf(highest):
        return logits
    shifted = logits - highest
    with np.errstate(divide="ignore"):
        return shifted - np.log(np.exp(shifted).sum())


def _at(table, ids):
    """Looks up the row of a table that follows `ids`."""
    return table[min(len(ids), len(table) - 1)][ids[-1] if ids else BOS]


def _split(options):
    """Parts the options of scores from those of what may come next."""
    names = ("length_penalty", "length_penalty_form", "coverage_penalty")
    constraints = dict(options)
    scoring = {
        name: constraints.pop(name) for name in names if name in constraints
    }
    return scoring, constraints
