"""Greedy search: always the likeliest next id."""

import tensorflow as tf

from keras_transformer.decoding.constraints import UNCONSTRAINED, NextIds
from keras_transformer.decoding.logits import IMPOSSIBLE, log_prob_of
from keras_transformer.decoding.one_hypothesis import search_one_hypothesis
from keras_transformer.decoding.prefix import forced_at


def greedy_search(
    step,
    state,
    max_lengths,
    *,
    constraints=UNCONSTRAINED,
    pad_id=0,
    bos_id=1,
    eos_id=2,
):
    """Extends each sentence by its likeliest next id until eos.

    Ties go to the lower id. Rows are independent: what one generates does
    not depend on the others. A row that comes to a step at which no id is
    possible has no hypothesis: length 0, score minus infinity.

    Args:
        step: function `(token_ids, position, state) -> (logits, state)`; see
            `keras_transformer.decoding.search_state`.
        state: `SearchState` of `B` rows.
        max_lengths: int32 `(B,)`, the largest length of each row; 0 and less
            generates nothing.
        constraints: `Constraints`. A repetition penalty changes which id is
            likeliest and not the score.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.

    Returns:
        `Hypotheses`; scores are plain log-probabilities of the model.

    Raises:
        ValueError: if a constraint that is a Python number is out of its
            range (`keras_transformer.decoding.options.RANGES`), or `pad_id`
            is `eos_id`.

    Example:

    A model that counts up from 3 to 5 and then stops:

    >>> from keras_transformer.decoding import SearchState
    >>> table = np.full((6, 6), -9.0, "float32")
    >>> table[1, 3] = table[3, 4] = table[4, 5] = table[5, 2] = 9.0
    >>> def step(token_ids, position, state):
    ...     return tf.gather(table, token_ids), state
    >>> result = greedy_search(step, SearchState(), tf.constant([8, 2]))
    >>> print(result.token_ids.numpy())
    [[3 4 5 2]
     [3 4 0 0]]
    >>> print(result.lengths.numpy(), result.finished.numpy())
    [4 2] [ True False]
    """
    next_ids = NextIds(
        constraints, tf.size(max_lengths), 1, pad_id, bos_id, eos_id
    )

    def choose(logits, token_ids, position, forced):
        def likeliest():
            return _first(*next_ids.free_candidates(logits, position))

        def likeliest_under_constraints():
            log_prob, next_id = _first(
                *next_ids.constrained_candidates(
                    logits, token_ids, position, forced_at(position, forced)
                )
            )
            # Chosen by penalized logits, scored by those of the model.
            possible = log_prob > IMPOSSIBLE
            log_prob = log_prob_of(logits, next_id)
            return tf.where(possible, log_prob, IMPOSSIBLE), next_id

        return next_ids.choose(position, likeliest_under_constraints, likeliest)

    return search_one_hypothesis(
        step,
        choose,
        state,
        next_ids.forced,
        max_lengths,
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
    )


def _first(log_probs, ids):
    """Takes the likeliest candidate; of equal ones the lower id."""
    log_probs, best = tf.math.top_k(log_probs, 1)
    best_ids = tf.gather(ids, best, batch_dims=1)
    return tf.squeeze(log_probs, axis=1), tf.squeeze(best_ids, axis=1)
