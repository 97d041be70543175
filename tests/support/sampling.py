"""Sampling in plain Python and NumPy, one number and one row at a time."""

import functools
import math

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import Hypotheses, SearchState, sample
from keras_transformer.decoding.options import DEFAULTS
from tests.support.step_tables import as_keywords, option_specs

PRIME = 23159
# The first digit after the point, to the base PRIME, of some square roots.
ROOTS = [0, *(math.isqrt(p * PRIME**2) % PRIME for p in (2, 3, 5, 7, 11))]
BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))

# Quantiles of the chi-square distribution by degrees of freedom: a statistic
# is above them once in a thousand times. From scipy.stats.chi2.ppf(0.999, n).
QUANTILES = {
    2: 13.816,
    3: 16.266,
    4: 18.467,
    6: 22.458,
    8: 26.124,
    20: 45.315,
    24: 51.179,
    99: 148.230,
    399: 492.022,
    999: 1142.848,
}

# Closer than this to another float32 may take it for the larger.
MARGIN = 1e-5


@functools.cache
def noise(seed, position, token_id):
    """Gives the float32 for a seed, two ints, at a position, and for an id.

    Each number is written to the base PRIME, two digits, and added to a key
    of two digits, which is then stirred: six times, or four after the last
    number, the square of the left digit and a constant is added to the right
    one, and the two change places.
    """
    left = right = 0
    for number, rounds in zip(
        (*seed, position, token_id), (6, 6, 6, 4), strict=True
    ):
        high, low = divmod(number, PRIME)
        left, right = left + low, right + high
        for root in ROOTS[:rounds]:
            left, right = ((left + root) ** 2 + right) % PRIME, left
    steps = np.float32(left * PRIME + right) + np.float32(0.5)
    return min(steps * np.float32(1 / PRIME**2), BELOW_ONE)


def distribution(logits, temperature=1.0, top_k=0, top_p=1.0):
    """Gives what may be drawn: ids in order, and their probabilities."""
    if temperature < 1e-4:
        temperature, top_k = 1.0, 1
    scaled = np.asarray(logits, np.float64) / temperature
    probabilities = np.exp(scaled - scaled.max())
    probabilities /= probabilities.sum()
    size = len(probabilities)
    if not 0 < top_k < size:
        top_k = size
    if top_k == size and top_p == 1:
        return np.arange(size), probabilities
    ids = np.argsort(-np.asarray(logits), kind="stable")[:top_k]
    probabilities = probabilities[ids] / probabilities[ids].sum()
    if top_p < 1:
        # What float32 takes it for. A sum that is that but for the rounding of
        # float64 reaches it.
        top_p = float(np.float32(top_p))
        before = np.append(0.0, np.cumsum(probabilities)[:-1])
        off = np.abs(before - top_p)
        if ((before > 0) & (off > 1e-9) & (off < 2e-6)).any():
            raise AssertionError(f"float32 cannot tell top_p={top_p}")
        kept = before < top_p - 1e-9
        ids, probabilities = ids[kept], probabilities[kept]
    return ids, probabilities / probabilities.sum()


def by_id(ids, probabilities, vocab_size):
    """Sorts what `distribution` gives by id, with 0 for the others."""
    found = np.zeros(vocab_size)
    found[ids] = probabilities
    return found


def drawn(ids, probabilities, seed, position):
    """Gives the id drawn, and by how much it is ahead of all others.

    Each id arrives after an exponential time at the rate of its probability;
    the first is drawn.
    """
    uniforms = [noise(seed, position, int(token_id)) for token_id in ids]
    times = -np.log1p(-np.array(uniforms, np.float64))
    with np.errstate(divide="ignore"):
        lead = np.log(probabilities) - np.log(times)
    first = np.argmax(lead)
    others = np.delete(lead, first).max(initial=-np.inf)
    return ids[first], lead[first] - others


def numpy_sample(
    logits_after,
    seed,
    cap,
    *,
    target_prefix=(),
    min_length=0,
    forbidden_ids=(),
    no_repeat_ngram_size=0,
    repetition_penalty=1.0,
    **options,
):
    """Samples one sentence: ids, score, finished.

    Args:
        logits_after: function of a list of ids, which gives logits `(V,)`.
        seed: two ints.
        cap: int, the largest length.
        target_prefix: ids that come first.
        min_length: as of `sample`, as are the rest.
        forbidden_ids: ids.
        no_repeat_ngram_size: int.
        repetition_penalty: float.
        **options: of `distribution`.
    """
    ids, score = [], 0.0
    while len(ids) < cap and 2 not in ids:
        logits = np.asarray(logits_after(ids), np.float64)
        if len(ids) < len(target_prefix):
            next_id = target_prefix[len(ids)]
        else:
            adjusted = logits.copy()
            for seen in set(ids):
                better = logits[seen] > 0
                adjusted[seen] *= (
                    1 / repetition_penalty if better else repetition_penalty
                )
            known = [each for each in forbidden_ids if each < len(adjusted)]
            adjusted[[0, 1, *known]] = -np.inf
            if len(ids) + 1 < min_length:
                adjusted[2] = -np.inf
            for repeating in range(len(adjusted)):
                if ends_in_repetition([*ids, repeating], no_repeat_ngram_size):
                    adjusted[repeating] = -np.inf
            if np.isneginf(adjusted).all():
                return [], -np.inf, False
            next_id, lead = drawn(
                *distribution(adjusted, **options), seed, len(ids)
            )
            if lead < MARGIN:
                raise AssertionError(f"float32 cannot tell ids of seed {seed}")
        ids.append(int(next_id))
        score += logits[next_id] - np.logaddexp.reduce(logits)
    return ids, score, 2 in ids


def ends_in_repetition(ids, size):
    """Whether the last `size` ids are somewhere before them, too."""
    if size < 1:
        return False
    ngrams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
    return ngrams[-1:] != [] and ngrams[-1] in ngrams[:-1]


def step(token_ids, position, state):
    """A model that remembers all ids: `state.sentence`, `(B, M, V)`, by sum.

    `state.hypothesis`, `(R,)`, holds five times itself plus the last id,
    modulo `M`.
    """
    history = (5 * state.hypothesis + token_ids) % tf.shape(state.sentence)[1]
    logits = tf.gather(state.sentence, history, batch_dims=1)
    return logits, SearchState(state.sentence, history)


def logits_after(table):
    """Gives the function of `numpy_sample` for a table `(M, V)` of `step`."""

    def look_up(ids):
        history = 0
        for token_id in (1, *ids):
            history = (5 * history + token_id) % len(table)
        return table[history]

    return look_up


def start(tables):
    """Gives the state of `step` for tables `(B, M, V)`."""
    return SearchState(tf.constant(tables), tf.zeros(len(tables), tf.int32))


def history_tables(count, vocab_size=11, histories=13, seed=0, scale=1.5):
    """Draws tables for `step` in which eos is neither rare nor frequent."""
    generator = np.random.default_rng(seed)
    shape = (count, histories, vocab_size)
    return generator.normal(scale=scale, size=shape).astype("float32")


def sample_tables(tables, caps, seeds, **options):
    """Runs `sample` in a graph over one table a row.

    Args:
        tables: array `(B, M, V)`.
        caps: list of `B` ints.
        seeds: list of `B` pairs of ints.
        **options: of `sample`.

    Returns:
        `Hypotheses` of NumPy arrays.
    """
    tables = np.asarray(tables)
    result = _graph(tables.dtype.name)(
        tables,
        np.asarray(caps, "int32"),
        np.asarray(seeds, "int32").reshape(-1, 2),
        **{
            name: np.asarray(
                options.get(name, DEFAULTS[name]), spec.dtype.as_numpy_dtype
            )
            for name, spec in option_specs("sample").items()
        },
    )
    return Hypotheses(*[tensor.numpy() for tensor in result])


# One trace serves all tests, because options are tensors.
@functools.cache
def _graph(dtype):
    @tf.function(autograph=False)
    def run(tables, caps, seeds, **options):
        state = SearchState(tables, tf.zeros_like(caps))
        return sample(step, state, caps, seeds, **as_keywords(options))

    return run.get_concrete_function(
        tf.TensorSpec([None] * 3, dtype),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None, 2], tf.int32),
        **option_specs("sample"),
    )


def generated(result):
    """Lists the ids of each row, without padding."""
    return [
        ids[:length].tolist()
        for ids, length in zip(result.token_ids, result.lengths, strict=True)
    ]


def assert_distributed(counts, probabilities):
    """Chi-square test of counts; what has no probability must not occur."""
    counts = np.asarray(counts).ravel()
    probabilities = np.asarray(probabilities, np.float64).ravel()
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    expected = counts.sum() * probabilities[possible]
    assert expected.min() > 5, "too few draws for a chi-square test"
    statistic = ((counts[possible] - expected) ** 2 / expected).sum()
    assert statistic < QUANTILES[possible.sum() - 1]
