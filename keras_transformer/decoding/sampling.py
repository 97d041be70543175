"""Sampling: the next id is drawn, the likelier the more often."""

import tensorflow as tf

from keras_transformer.decoding.constraints import UNCONSTRAINED, NextIds
from keras_transformer.decoding.logits import (
    IMPOSSIBLE,
    log_prob_of,
    mask_forbidden,
)
from keras_transformer.decoding.noise import (
    seed_keys,
    step_keys,
    uniform,
)
from keras_transformer.decoding.one_hypothesis import search_one_hypothesis
from keras_transformer.decoding.option_checks import check_numbers
from keras_transformer.decoding.options import DEFAULTS
from keras_transformer.decoding.prefix import force, forced_at

# Below this a temperature counts as 0: the likeliest id.
COLD = 1e-4


def sample(
    step,
    state,
    max_lengths,
    seeds,
    *,
    temperature=DEFAULTS["temperature"],
    top_k=DEFAULTS["top_k"],
    top_p=DEFAULTS["top_p"],
    constraints=UNCONSTRAINED,
    pad_id=0,
    bos_id=1,
    eos_id=2,
):
    """Extends each sentence by ids drawn from the model, until eos.

    The order of the steps from logits to a draw: repetition penalty,
    forbidden ids, temperature, softmax, top-k, renormalisation, top-p,
    renormalisation, draw; see `draw`.

    What a row generates depends on its own seed alone: neither on the other
    rows, nor on its place among them, nor on the runtime, unless rounding
    decides between two ids (see `draw`).

    Args:
        step: function `(token_ids, position, state) -> (logits, state)`; see
            `keras_transformer.decoding.search_state`.
        state: `SearchState` of `B` rows.
        max_lengths: int32 `(B,)`, the largest length of each row; 0 and less
            generates nothing.
        seeds: int32 `(B, 2)`, a seed for each row; any values.
        temperature: float or float32 scalar, divides the logits: below 1 the
            likely becomes likelier; 0 (below `COLD`) is greedy search.
        top_k: int or int32 scalar, draw from the `k` likeliest ids only; 0
            is off.
        top_p: float or float32 scalar in (0, 1], draw from the likeliest ids
            only that together have this probability; 1 is off.
        constraints: as of `greedy_search`.
        pad_id: int, fills rows up; never drawn.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.

    Returns:
        `Hypotheses`; scores are plain log-probabilities of the model, at
        temperature 1 and with nothing left out.

    Raises:
        ValueError: as of `greedy_search`.

    Example:

    >>> from keras_transformer.decoding import SearchState
    >>> table = np.log(np.full((6, 6), [0, 0, 0.25, 0.25, 0.25, 0.25]) + 1e-9)
    >>> def step(token_ids, position, state):
    ...     return tf.gather(table.astype("float32"), token_ids), state
    >>> seeds = tf.constant([[7, 0], [7, 1], [7, 0]])
    >>> result = sample(step, SearchState(), [9, 9, 9], seeds)
    >>> rows = result.token_ids.numpy().tolist()
    >>> rows[0] == rows[2], rows[0] == rows[1]
    (True, False)
    """
    check_numbers(temperature=temperature, top_k=top_k, top_p=top_p)
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    next_ids = NextIds(
        constraints, tf.size(max_lengths), 1, pad_id, bos_id, eos_id
    )

    def choose(logits, token_ids, position, fixed):
        keys, forced = fixed

        def drawn(adjusted, forbidden):
            masked = mask_forbidden(adjusted, forbidden, pad_id)
            chosen = draw(
                masked, step_keys(keys, position), temperature, top_k, top_p
            )
            possible = tf.reduce_max(masked, axis=1) > IMPOSSIBLE
            log_probs = log_prob_of(logits, chosen)
            return tf.where(possible, log_probs, IMPOSSIBLE), chosen

        def drawn_under_constraints():
            log_probs, chosen = drawn(
                *next_ids.look_back(logits, token_ids, position)
            )
            log_probs, chosen = force(
                forced_at(position, forced),
                logits,
                log_probs[:, None],
                chosen[:, None],
            )
            return log_probs[:, 0], chosen[:, 0]

        return next_ids.choose(
            position,
            drawn_under_constraints,
            lambda: drawn(logits, next_ids.forbidden(position)),
        )

    keys = seed_keys(tf.convert_to_tensor(seeds, tf.int32))
    return search_one_hypothesis(
        step,
        choose,
        state,
        (keys, next_ids.forced),
        max_lengths,
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
    )


def draw(logits, keys, temperature, top_k, top_p):
    """Draws one id a row: logits, temperature, softmax, top-k, top-p, draw.

    The id drawn is that of the largest `z + g`, where `z` is its logit over
    the temperature and `g` is Gumbel noise of the row and the id; it is `i`
    with the probability `softmax(z)_i` (the Gumbel-max trick, Maddison et
    al., 2014, https://arxiv.org/abs/1411.0030, section 2), from about 1e-9 up.
    Unlike a search in cumulative probabilities, whose every boundary counts,
    it gives the same id in all runtimes, unless rounding decides: between the
    best two ids, or whether the best is still among the top k or p.

    Args:
        logits: float32 `(B, V)`; minus infinity is not drawn, unless a row
            has nothing else.
        keys: int32 `(B, 2)` of `step_keys`, new ones for each draw.
        temperature: float32 scalar; 0 (below `COLD`) draws the likeliest id.
        top_k: int32 scalar; 0 and less, or `V` and more, is off.
        top_p: float32 scalar in (0, 1]; 1 is off.

    Returns:
        int32 `(B,)`.

    Example:

    >>> logits = tf.math.log([[0.3, 0.1, 0.1, 0.5]] * 6)
    >>> keys = seed_keys(tf.constant([[7, line] for line in range(6)]))
    >>> print(draw(logits, keys, 1.0, 0, 0.7).numpy())
    [3 3 0 3 3 3]
    """
    values, ids = eligible(logits, temperature, top_k, top_p)
    # An id has the same noise whatever else is eligible.
    arrivals = _exponential(uniform(keys, ids))
    _, first = tf.math.top_k(values - tf.math.log(arrivals), 1)
    chosen = tf.gather(ids + tf.zeros_like(first), first, batch_dims=1)
    # Not sliced: LiteRT does not know the rank of what a condition gives.
    return tf.reshape(chosen, (-1,))


def eligible(logits, temperature, top_k, top_p):
    """Lists what may be drawn: temperature, softmax, top-k, top-p.

    Top-k: Fan et al., 2018 (https://arxiv.org/abs/1805.04833). Top-p:
    Holtzman et al., 2019 (https://arxiv.org/abs/1904.09751), the smallest set
    of likeliest ids whose probability, among the `k`, reaches `p`; the id
    that crosses `p` belongs to it. Of ids that tie the lower is taken first.

    Args:
        logits: as of `draw`, as are all others.
        temperature: float32 scalar.
        top_k: int32 scalar.
        top_p: float32 scalar.

    Returns:
        float32 `(B, C)`, logits over the temperature, less their maximum;
        minus infinity of what may not be drawn; and the ids they are of,
        int32 `(B, C)`, or `(1, C)` if these are the same for all rows.

    Example:

    >>> logits = tf.math.log([[0.3, 0.1, 0.1, 0.5]])
    >>> values, ids = eligible(logits, 1.0, 3, 0.7)
    >>> print(ids.numpy(), tf.nn.softmax(values).numpy().round(3))
    [[3 0 1]] [[0.625 0.375 0.   ]]
    """
    vocab_size = tf.shape(logits)[1]
    cold = temperature < COLD
    temperature = tf.where(cold, 1.0, temperature)
    top_k = tf.where(cold, 1, top_k)
    top_k = tf.where(top_k > 0, tf.minimum(top_k, vocab_size), vocab_size)
    highest = tf.reduce_max(logits, axis=1, keepdims=True)
    # A row without anything possible would become NaN.
    highest = tf.where(highest > IMPOSSIBLE, highest, 0.0)

    def likeliest():
        values, ids = tf.math.top_k(logits, top_k)
        values = (values - highest) / temperature
        weights = tf.exp(values)  # softmax, unnormalised
        cumulative = tf.cumsum(weights, axis=1)
        before = tf.concat([tf.zeros_like(highest), cumulative[:, :-1]], axis=1)
        kept = (before < top_p * cumulative[:, -1:]) | (top_p >= 1.0)
        return tf.where(kept, values, IMPOSSIBLE), ids

    def everything():
        return (logits - highest) / temperature, tf.range(vocab_size)[None, :]

    # Sorting a vocabulary takes longer than a step of a small model.
    return tf.cond((top_k < vocab_size) | (top_p < 1.0), likeliest, everything)


def _exponential(uniform):
    """Makes exponential variates, -log(1 - u), of uniform ones, float32.

    The least of many decides, so the digits of small ones count; in the
    difference they would be lost, but not in the first terms of the series.
    """
    series = 1.0 + uniform * (0.5 + uniform * (1 / 3))
    return tf.where(
        uniform < 0.01, uniform * series, -tf.math.log(1.0 - uniform)
    )
