"""Beam search (paper, section 6.1).

Two sets of `K` hypotheses a sentence, as in the authors' own code: alive ones
are extended, finished ones end in eos and never change again.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.length_penalty import gnmt_penalty
from keras_transformer.decoding.logits import (
    IMPOSSIBLE,
    allowed_candidates,
    forbid_early_eos,
)
from keras_transformer.decoding.state import (
    Hypotheses,
    SearchState,
    loop_shapes,
    select_rows,
)


class _Loop(NamedTuple):
    position: object  # () int32
    done: object  # (B,) bool
    alive_ids: object  # (B, K, t + 1) int32, bos first
    alive_log_probs: object  # (B, K) float32, best first, -inf: empty slot
    finished_ids: object  # (B, K, t + 1) int32, bos first
    finished_scores: object  # (B, K) float32, best first, -inf: empty slot
    finished_lengths: object  # (B, K) int32
    state: object


class _Candidates(NamedTuple):
    log_probs: object  # (B, 2K) float32, best first
    parents: object  # (B, 2K) int32, which alive hypothesis each extends
    token_ids: object  # (B, 2K) int32


def beam_search(
    step,
    state,
    max_lengths,
    *,
    beam_size=4,
    num_hypotheses=1,
    length_penalty=0.6,
    min_length=0,
    pad_id=0,
    bos_id=1,
    eos_id=2,
    forbidden_ids=None,
):
    """Keeps the `K` likeliest prefixes of each sentence, and its best ends.

    A step ranks the `2K` best extensions of the alive hypotheses: at most `K`
    of them are eos, so `K` always stay alive. An eos finishes a hypothesis
    only from among the best `K`, so that `K = 1` is greedy search. The score
    of a finished hypothesis is its log-probability over `gnmt_penalty`.

    A sentence stops once its `N` best finished hypotheses cannot be beaten by
    any alive one at any length up to its cap. With that rule a beam as wide
    as the space finds the best sentence for any `length_penalty`, negative or
    not. Sentences are independent; ties go to the older hypothesis and the
    lower id.

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
            `gnmt_penalty`.
        min_length: int or int32 scalar; eos is not allowed earlier.
        pad_id: int, fills rows up.
        bos_id: int, the id at position 0.
        eos_id: int, ends a sentence.
        forbidden_ids: sequence of ids that are never generated; by default
            `pad_id` and `bos_id`.

    Returns:
        `Hypotheses` with an axis `N`: finished ones first, best first, then,
        if fewer than `N` finished, those cut at the largest length, best
        first. A slot for which there is no hypothesis has length 0 and score
        minus infinity.

    Example:

    Greedy search takes 3, which is likelier at first, and pays later:

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
    if forbidden_ids is None:
        forbidden_ids = (pad_id, bos_id)
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    beam_size = tf.convert_to_tensor(beam_size, tf.int32)

    def body(loop):
        logits, state = step(
            tf.reshape(loop.alive_ids[:, :, -1], (-1,)),
            loop.position,
            loop.state,
        )
        candidates = _extend(
            loop.alive_log_probs,
            tf.cast(logits, tf.float32),
            forbid_early_eos(forbidden_ids, eos_id, loop.position, min_length),
        )
        loop = loop._replace(state=state)
        loop = _finish(loop, candidates, length_penalty, pad_id, eos_id)
        loop = _survive(loop, candidates, pad_id, eos_id)
        loop = loop._replace(position=loop.position + 1)
        done = _cannot_improve(
            loop, max_lengths, num_hypotheses, length_penalty
        )
        return loop._replace(done=tf.logical_or(loop.done, done))

    start = _start(state, max_lengths, beam_size, bos_id)
    ids_shape = tf.TensorShape([None, None, None])
    shapes = loop_shapes(start)._replace(
        alive_ids=ids_shape, finished_ids=ids_shape
    )
    end = tf.while_loop(
        lambda *loop: tf.logical_not(tf.reduce_all(_Loop(*loop).done)),
        lambda *loop: tuple(body(_Loop(*loop))),
        tuple(start),
        shape_invariants=tuple(shapes),
    )
    return _best(
        _Loop(*end), max_lengths, num_hypotheses, length_penalty, pad_id
    )


def _start(state, max_lengths, beam_size, bos_id):
    """One alive hypothesis a sentence, bos; the other slots are empty."""
    batch = tf.size(max_lengths)
    slots = tf.zeros((batch, beam_size), tf.float32)
    first = tf.zeros((batch, 1), tf.float32)
    ids = tf.fill((batch, beam_size, 1), bos_id)
    rows = tf.range(batch * beam_size) // beam_size
    return _Loop(
        position=tf.constant(0),
        done=max_lengths <= 0,
        alive_ids=ids,
        alive_log_probs=tf.concat([first, slots[:, 1:] + IMPOSSIBLE], axis=1),
        finished_ids=ids,
        finished_scores=slots + IMPOSSIBLE,
        finished_lengths=tf.cast(slots, tf.int32),
        state=SearchState(state.sentence, select_rows(state.hypothesis, rows)),
    )


def _extend(alive_log_probs, logits, forbidden_ids):
    """Ranks the extensions of all alive hypotheses of a sentence."""
    batch, beam_size = tf.unstack(tf.shape(alive_log_probs))
    log_probs, ids = allowed_candidates(logits, 2 * beam_size, forbidden_ids)
    width = tf.shape(ids)[1]
    log_probs += tf.reshape(alive_log_probs, (-1, 1))
    log_probs = tf.reshape(log_probs, (batch, beam_size * width))
    ids = tf.reshape(ids, (batch, beam_size * width))
    best, index = tf.math.top_k(log_probs, tf.minimum(2, width) * beam_size)
    return _Candidates(
        best, index // width, tf.gather(ids, index, batch_dims=1)
    )


def _finish(loop, candidates, alpha, pad_id, eos_id):
    """Merges the hypotheses that end now into the finished set."""
    beam_size = tf.shape(loop.alive_log_probs)[1]
    # gather rather than a slice, here and below: to ONNX a slice of unknown
    # length goes as floats of 1e9, which half precision cannot hold.
    log_probs, parents, token_ids = (
        tf.gather(field, tf.range(beam_size), axis=1) for field in candidates
    )
    length = loop.position + 1
    ends = tf.logical_and(
        token_ids == eos_id, tf.logical_not(loop.done)[:, None]
    )
    new_scores = tf.where(
        ends, log_probs / gnmt_penalty(length, alpha), IMPOSSIBLE
    )
    new_ids = _append(
        tf.gather(loop.alive_ids, parents, batch_dims=1), token_ids
    )
    old_ids = _append(loop.finished_ids, tf.fill(tf.shape(parents), pad_id))
    scores, index = tf.math.top_k(
        tf.concat([loop.finished_scores, new_scores], axis=1), beam_size
    )
    lengths = tf.concat(
        [loop.finished_lengths, tf.fill(tf.shape(parents), length)], axis=1
    )
    return loop._replace(
        finished_scores=scores,
        finished_ids=tf.gather(
            tf.concat([old_ids, new_ids], axis=1), index, batch_dims=1
        ),
        finished_lengths=tf.gather(lengths, index, batch_dims=1),
    )


def _survive(loop, candidates, pad_id, eos_id):
    """Keeps the best extensions that do not end; done sentences stay put."""
    batch, beam_size = tf.unstack(tf.shape(loop.alive_log_probs))
    log_probs, index = tf.math.top_k(
        tf.where(
            candidates.token_ids == eos_id, IMPOSSIBLE, candidates.log_probs
        ),
        beam_size,
    )
    done = loop.done[:, None]
    slots = tf.range(beam_size)[None, :]
    parents = tf.where(
        done, slots, tf.gather(candidates.parents, index, batch_dims=1)
    )
    token_ids = tf.where(
        done, pad_id, tf.gather(candidates.token_ids, index, batch_dims=1)
    )
    rows = tf.reshape(parents + tf.range(batch)[:, None] * beam_size, (-1,))
    return loop._replace(
        alive_log_probs=tf.where(done, loop.alive_log_probs, log_probs),
        alive_ids=_append(
            tf.gather(loop.alive_ids, parents, batch_dims=1), token_ids
        ),
        state=SearchState(
            loop.state.sentence, select_rows(loop.state.hypothesis, rows)
        ),
    )


def _cannot_improve(loop, max_lengths, num_hypotheses, alpha):
    """Tells where no alive hypothesis can enter the `N` best finished ones.

    A log-probability only falls, and the penalty is monotonic in the length,
    so the best score an alive hypothesis can still reach is its present
    log-probability over the penalty of the next length or of the last,
    whichever is better; which one that is depends on the sign of alpha.
    """
    best_alive = loop.alive_log_probs[:, 0]
    bound = tf.maximum(
        best_alive / gnmt_penalty(loop.position + 1, alpha),
        best_alive / gnmt_penalty(max_lengths, alpha),
    )
    worst = tf.gather(loop.finished_scores, num_hypotheses - 1, axis=1)
    # Asked by itself: over a penalty that overflows its bound would be NaN.
    none_alive = tf.equal(best_alive, IMPOSSIBLE)
    return (loop.position >= max_lengths) | none_alive | (worst >= bound)


def _best(loop, max_lengths, num_hypotheses, alpha, pad_id):
    """Lists finished hypotheses, then those cut at the largest length."""
    alive_lengths = tf.clip_by_value(max_lengths, 0, loop.position)
    alive_scores = loop.alive_log_probs / gnmt_penalty(
        alive_lengths[:, None], alpha
    )
    scores = tf.concat([loop.finished_scores, alive_scores], axis=1)
    lengths = tf.concat(
        [
            loop.finished_lengths,
            tf.ones_like(loop.finished_lengths) * alive_lengths[:, None],
        ],
        axis=1,
    )
    ids = tf.concat([loop.finished_ids, loop.alive_ids], axis=1)

    beam_size = tf.shape(loop.finished_scores)[1]
    num_finished = tf.reduce_sum(
        tf.cast(loop.finished_scores > IMPOSSIBLE, tf.int32), axis=1
    )[:, None]
    slots = tf.range(num_hypotheses)[None, :]
    finished = slots < num_finished
    index = tf.where(finished, slots, beam_size + slots - num_finished)

    scores = tf.gather(scores, index, batch_dims=1)
    empty = tf.equal(scores, IMPOSSIBLE)
    lengths = tf.where(empty, 0, tf.gather(lengths, index, batch_dims=1))
    ids = tf.gather(ids, index, batch_dims=1)[:, :, 1:]
    ids = tf.where(empty[:, :, None], pad_id, ids)
    longest = tf.reduce_max(tf.concat([tf.reshape(lengths, (-1,)), [0]], 0))
    ids = tf.gather(ids, tf.range(longest), axis=2)
    return Hypotheses(ids, lengths, scores, finished)


def _append(ids, token_ids):
    return tf.concat([ids, token_ids[:, :, None]], axis=2)
