"""Greedy search: always the likeliest next id."""

import tensorflow as tf

from keras_transformer.decoding.constraints import Constraints, when
from keras_transformer.decoding.logits import (
    IMPOSSIBLE,
    allowed_candidates,
    log_prob_of,
)
from keras_transformer.decoding.prefix import (
    forced_at,
    forced_ids,
    prefix_length,
)
from keras_transformer.decoding.single import single_search


def greedy_search(
    step,
    state,
    max_lengths,
    *,
    target_prefix=None,
    min_length=0,
    forbidden_ids=None,
    no_repeat_ngram_size=0,
    repetition_penalty=1.0,
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
            `keras_transformer.decoding.state`.
        state: `SearchState` of `B` rows.
        max_lengths: int32 `(B,)`, the largest length of each row; 0 and less
            generates nothing.
        target_prefix: int32 `(B, P)`, ids that each row must generate first,
            padded at the end, or `(1, P)` for all rows the same. What is
            forced is generated whatever the options but the largest length
            say.
        min_length: int or int32 scalar; eos is not allowed earlier.
        forbidden_ids: sequence of ids that are never generated, beside
            `pad_id`; by default `bos_id`.
        no_repeat_ngram_size: int or int32 scalar, `n`: no `n` ids in a row
            occur twice in an output, see `repeated_ngrams`; 0 is off.
        repetition_penalty: float or float32 scalar, see
            `penalize_repetition`; 1 is off. It changes which id is likeliest
            and not the score.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.

    Returns:
        `Hypotheses`; scores are plain log-probabilities of the model.

    Raises:
        ValueError: if an option that is a Python number is out of its range
            (`keras_transformer.decoding.options.RANGES`), or `pad_id` is
            `eos_id`.

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
    constraints = Constraints.checked(
        pad_id,
        eos_id,
        (bos_id,) if forbidden_ids is None else forbidden_ids,
        min_length=min_length,
        no_repeat_ngram_size=no_repeat_ngram_size,
        repetition_penalty=repetition_penalty,
    )

    forced = forced_ids(target_prefix, tf.size(max_lengths), pad_id)
    longest_prefix = prefix_length(forced)
    count = 1 + constraints.num_forbidden

    def choose(logits, token_ids, position, forced):
        def likeliest():
            forbidden = constraints.forbidden(position)
            return _first(*allowed_candidates(logits, count, forbidden))

        def likeliest_under_constraints():
            log_prob, next_id = _first(
                *constraints.candidates(
                    logits, 1, token_ids, position, forced_at(position, forced)
                )
            )
            # Chosen by penalized logits, scored by those of the model.
            return (
                tf.where(
                    log_prob > IMPOSSIBLE,
                    log_prob_of(logits, next_id),
                    IMPOSSIBLE,
                ),
                next_id,
            )

        return when(
            constraints.are_active(position, longest_prefix),
            likeliest_under_constraints,
            likeliest,
        )

    return single_search(
        step,
        choose,
        state,
        forced,
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
