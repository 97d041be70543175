"""Beam search (paper, section 6.1)."""

import tensorflow as tf

from keras_transformer.decoding.beam_sets import BeamRules, Caps
from keras_transformer.decoding.constraints import Constraints, when
from keras_transformer.decoding.logits import (
    IMPOSSIBLE,
    allowed_candidates,
)
from keras_transformer.decoding.options import (
    check_given,
    check_num_hypotheses,
)
from keras_transformer.decoding.penalties import GNMT, LengthPenalty
from keras_transformer.decoding.prefix import (
    forced_at,
    forced_ids,
    prefix_length,
)
from keras_transformer.decoding.rows import search_rows
from keras_transformer.decoding.state import select_rows


def beam_search(
    step,
    state,
    max_lengths,
    *,
    beam_size=4,
    num_hypotheses=1,
    length_penalty=0.6,
    length_penalty_form=GNMT,
    coverage_penalty=0.0,
    early_stopping=False,
    target_prefix=None,
    min_length=0,
    forbidden_ids=None,
    no_repeat_ngram_size=0,
    repetition_penalty=1.0,
    pad_id=0,
    bos_id=1,
    eos_id=2,
):
    """Keeps the `K` likeliest prefixes of each sentence, and its best ends.

    A step ranks the `2K` best extensions of the alive hypotheses: at most `K`
    of them are eos, so `K` always stay alive. An eos finishes a hypothesis
    only from among the best `K`, so that `K = 1` without penalties is greedy
    search. The score of a finished hypothesis is its log-probability over
    `LengthPenalty`, plus `coverage_penalty`; alive ones are ranked by
    log-probability alone.

    A sentence stops once its `N` best finished hypotheses cannot be beaten by
    any alive one at any length up to its cap. With that rule a beam as wide
    as the space finds the best sentence for any `length_penalty`, negative or
    not. Sentences are independent; ties go to the hypothesis that
    finished first or ranks higher, then to the lower id.

    Paper: section 6.1, beam 4 and alpha 0.6. Different: the paper does not
    say how its search stops.

    Args:
        step: function `(token_ids, position, state) -> (logits, state)`; see
            `keras_transformer.decoding.state`.
        state: `SearchState` of `B` rows.
        max_lengths: int32 `(B,)`, the largest length of each row; 0 and less
            generates nothing.
        beam_size: int or int32 scalar, `K`, at least 1; may be larger than
            the vocabulary.
        num_hypotheses: int or int32 scalar, `N`, from 1 to `K`.
        length_penalty: float or float32 scalar, the `alpha` of
            `LengthPenalty`.
        length_penalty_form: int or int32 scalar, its form: 0 for
            `((5 + length) / 6) ^ alpha`, 1 for `length ^ alpha`.
        coverage_penalty: float or float32 scalar, the `beta` of
            `coverage_penalty`; 0 is off. Other values need a `step` that
            gives `attention` in its state.
        early_stopping: bool or scalar, whether a sentence stops as soon as
            `K` hypotheses have finished, as in CTranslate2 and fairseq,
            though one that is alive might still beat them.
        target_prefix: as of `greedy_search`.
        min_length: as of `greedy_search`.
        forbidden_ids: as of `greedy_search`.
        no_repeat_ngram_size: as of `greedy_search`.
        repetition_penalty: as of `greedy_search`, but that the score is made
            of the probabilities that it changed.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.

    Returns:
        `Hypotheses` with an axis `N`: finished ones first, best first, then,
        if fewer than `N` finished, those cut at the largest length, best
        first. A slot for which there is no hypothesis has length 0 and score
        minus infinity.

    Raises:
        ValueError: if an option that is a Python number is out of its range
            (`keras_transformer.decoding.options.RANGES`), `pad_id` is
            `eos_id`, or `coverage_penalty` may be on and `step` gives no
            attention.

    Example:

    Greedy search takes 3, which is likelier at first, and pays later:

    >>> from keras_transformer.decoding import SearchState
    >>> table = np.log(np.full((6, 6), 1e-9, "float32"))
    >>> table[1, [3, 4]] = np.log([0.6, 0.4])
    >>> table[3, [3, 4, 2]] = np.log([0.4, 0.3, 0.3])
    >>> table[4, 2] = 0.0
    >>> def step(token_ids, position, state):
    ...     return tf.gather(table, token_ids), state
    >>> result = beam_search(
    ...     step, SearchState(), [9], num_hypotheses=2, length_penalty=0.0)
    >>> print(result.token_ids.numpy()[0], result.scores.numpy().round(3))
    [[4 2]
     [3 2]] [[-0.916 -1.715]]
    """
    check_given(
        beam_size=beam_size,
        num_hypotheses=num_hypotheses,
        length_penalty=length_penalty,
        length_penalty_form=length_penalty_form,
        coverage_penalty=coverage_penalty,
        early_stopping=early_stopping,
    )
    check_num_hypotheses(num_hypotheses, beam_size)
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    beam_size = tf.convert_to_tensor(beam_size, tf.int32)
    rules = BeamRules(
        beam_size,
        num_hypotheses,
        LengthPenalty(length_penalty, length_penalty_form),
        coverage_penalty,
        tf.cast(early_stopping, tf.bool),
        pad_id,
        eos_id,
    )
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
    wanted = 2 * beam_size
    looked_at = wanted + constraints.num_forbidden

    def begin(sets, facts):
        caps, forced = facts
        slots = rules.slots(sets)

        def candidates(logits, sets, position):
            """Finds what may follow each alive hypothesis."""

            def constrained():
                token_ids = tf.gather(sets.token_ids, slots.alive, axis=1)
                here = forced_at(position, forced)[:, None]
                here += tf.zeros_like(slots.alive)
                return constraints.candidates(
                    logits,
                    wanted,
                    tf.reshape(token_ids, tf.stack([-1, position + 1])),
                    position,
                    tf.reshape(here, (-1,)),
                )

            return when(
                constraints.are_active(position, longest_prefix),
                constrained,
                lambda: allowed_candidates(
                    logits, looked_at, constraints.forbidden(position)
                ),
            )

        def advance(position, sets, state):
            last_ids = tf.gather(sets.token_ids, position, axis=2)
            last_ids = tf.gather(last_ids, slots.alive, axis=1)
            logits, state = step(tf.reshape(last_ids, (-1,)), position, state)
            logits = _at_least_two(tf.cast(logits, tf.float32))
            sets, parents = rules.extend(
                sets,
                slots,
                position + 1,
                caps,
                *candidates(logits, sets, position),
                state.attention,
            )
            moved = select_rows(state.hypothesis, parents)
            return sets, state._replace(hypothesis=moved)

        return advance

    caps = Caps(max_lengths, rules.length_penalty(max_lengths))
    one_of_each = tf.range(tf.size(max_lengths) * beam_size) // beam_size
    first = select_rows(state.hypothesis, one_of_each)
    return search_rows(
        begin,
        rules.best,
        rules.start(max_lengths, bos_id),
        (caps, forced),
        state._replace(hypothesis=first),
        pad_id,
        beam_size,
    )


def _at_least_two(logits):
    """Adds an impossible id to a vocabulary that has but one."""
    if logits.shape[1] is not None and logits.shape[1] > 1:
        return logits
    missing = tf.maximum(2 - tf.shape(logits)[1], 0)
    return tf.pad(logits, [[0, 0], [0, missing]], constant_values=IMPOSSIBLE)
