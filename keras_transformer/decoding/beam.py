"""Beam search (paper, section 6.1)."""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.beam_rules import BeamRules, Caps
from keras_transformer.decoding.constraints import UNCONSTRAINED, NextIds
from keras_transformer.decoding.logits import IMPOSSIBLE
from keras_transformer.decoding.loop import run_search
from keras_transformer.decoding.option_checks import check_numbers
from keras_transformer.decoding.options import DEFAULTS
from keras_transformer.decoding.penalties import LengthPenalty
from keras_transformer.decoding.prefix import forced_at
from keras_transformer.decoding.search_state import select_rows, take_step


def beam_search(
    step,
    state,
    max_lengths,
    *,
    beam_size=DEFAULTS["beam_size"],
    num_hypotheses=DEFAULTS["num_hypotheses"],
    length_penalty=DEFAULTS["length_penalty"],
    length_penalty_form=DEFAULTS["length_penalty_form"],
    coverage_penalty=DEFAULTS["coverage_penalty"],
    early_stopping=DEFAULTS["early_stopping"],
    constraints=UNCONSTRAINED,
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
            `keras_transformer.decoding.search_state`.
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
            gives attention.
        early_stopping: bool or scalar, whether a sentence stops as soon as
            `K` hypotheses have finished, as in CTranslate2 and fairseq,
            though one that is alive might still beat them.
        constraints: `Constraints`. With a repetition penalty the score is
            made of the probabilities that it changed.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.

    Returns:
        `Hypotheses` with an axis `N`: finished ones first, best first, then,
        if fewer than `N` finished, those cut at the largest length, best
        first. A slot for which there is no hypothesis has length 0 and score
        minus infinity.

    Raises:
        ValueError: if an option or a constraint that is a Python number is
            out of its range (`keras_transformer.decoding.options.RANGES`),
            `pad_id` is `eos_id`, or `coverage_penalty` may be on and `step`
            gives no attention.

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
    check_numbers(
        beam_size=beam_size,
        num_hypotheses=num_hypotheses,
        length_penalty=length_penalty,
        length_penalty_form=length_penalty_form,
        coverage_penalty=coverage_penalty,
        early_stopping=early_stopping,
    )
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    beam_size = tf.convert_to_tensor(beam_size, tf.int32)
    batch = tf.size(max_lengths)
    rules = BeamRules(
        beam_size,
        num_hypotheses,
        LengthPenalty(length_penalty, length_penalty_form),
        coverage_penalty,
        tf.cast(early_stopping, tf.bool),
        pad_id,
        eos_id,
    )
    next_ids = NextIds(
        constraints, batch, 2 * beam_size, pad_id, bos_id, eos_id
    )
    caps = Caps(max_lengths, rules.length_penalty(max_lengths))
    first = select_rows(
        state.hypothesis, tf.range(batch * beam_size) // beam_size
    )
    return run_search(
        _BeamSearch(step, rules, next_ids),
        rules.start(max_lengths, bos_id),
        (caps, next_ids.forced),
        state._replace(hypothesis=first),
        pad_id,
        beam_size,
    )


class _BeamSearch(NamedTuple):
    """The search, as `run_search` takes it; its rows are `BeamSets`."""

    step: object
    rules: BeamRules
    next_ids: NextIds

    def prepare(self, sets):
        return self.rules.slots(sets)

    def advance(self, position, sets, slots, fixed, state):
        caps, forced = fixed
        last_ids = tf.gather(sets.token_ids, position, axis=2)
        last_ids = tf.gather(last_ids, slots.alive, axis=1)
        logits, state, attention = take_step(
            self.step, tf.reshape(last_ids, (-1,)), position, state
        )
        log_probs, ids = self._candidates(
            _at_least_two(logits), position, sets, slots, forced
        )
        sets, parents = self.rules.extend(
            sets, slots, position + 1, caps, log_probs, ids, attention
        )
        moved = select_rows(state.hypothesis, parents)
        return sets, state._replace(hypothesis=moved)

    def collect(self, sets):
        return self.rules.best(sets)

    def _candidates(self, logits, position, sets, slots, forced):
        """Finds what may follow each alive hypothesis."""

        def constrained():
            token_ids = tf.gather(sets.token_ids, slots.alive, axis=1)
            here = forced_at(position, forced)[:, None]
            here += tf.zeros_like(slots.alive)
            return self.next_ids.constrained_candidates(
                logits,
                tf.reshape(token_ids, tf.stack([-1, position + 1])),
                position,
                tf.reshape(here, (-1,)),
            )

        return self.next_ids.choose(
            position,
            constrained,
            lambda: self.next_ids.free_candidates(logits, position),
        )


def _at_least_two(logits):
    """Adds an impossible id to a vocabulary that has but one."""
    if logits.shape[1] is not None and logits.shape[1] > 1:
        return logits
    missing = tf.maximum(2 - tf.shape(logits)[1], 0)
    return tf.pad(logits, [[0, 0], [0, missing]], constant_values=IMPOSSIBLE)
