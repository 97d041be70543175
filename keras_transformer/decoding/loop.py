"""The loop of every search: one step after the other, until all are done.

A sentence that is done leaves the running batch, so that it does not cost
time while others go on. Leaving means to copy what the model keeps of the
others, so done sentences wait until some can leave together.

What is searched for is told by an object with three methods:

- `prepare(rows)` gives what is the same in all steps until sentences leave;
- `advance(position, rows, prepared, fixed, state)` takes one step of all
  running sentences and gives `rows` and `state` anew; those that are done must
  come out as they went in, but for one more column of ids;
- `collect(rows)` gives the `Hypotheses` found so far, bos first in each.
"""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.search_state import SearchState, select_rows

# The done sentences leave once they are one in so many of the running ones.
# More would copy more often, fewer keep more of them
# (benchmarks/decode_self.py).
LEAVE_TOGETHER = 8


def run_search(search, rows, fixed, state, pad_id, beam_size=1):
    """Runs a search until every sentence is done.

    Args:
        search: the object with `prepare`, `advance` and `collect`.
        rows: `NamedTuple` of tensors `(B, ...)`, what the search keeps; its
            field `done` is bool `(B,)`. All their axes may change.
        fixed: nest of tensors `(B, ...)` that stay the same.
        state: `SearchState`, its `hypothesis` of `B * beam_size` rows.
        pad_id: int.
        beam_size: int or int32 scalar, `K`.

    Returns:
        `Hypotheses` of all sentences, without bos, as long as the longest.
    """

    def run_segment(position, index, found, rows, fixed, state):
        position, rows, state = _run_until_some_are_done(
            search, position, rows, fixed, state
        )
        found = _store(found, index, search.collect(rows), pad_id)
        stay = tf.cast(tf.where(tf.logical_not(rows.done))[:, 0], tf.int32)
        hypotheses = stay[:, None] * beam_size + tf.range(beam_size)[None, :]
        return (
            position,
            tf.gather(index, stay),
            found,
            select_rows(rows, stay),
            select_rows(fixed, stay),
            SearchState(
                select_rows(state.sentence, stay),
                select_rows(state.hypothesis, tf.reshape(hypotheses, (-1,))),
                select_rows(state.shared, stay),
            ),
        )

    found = search.collect(rows)
    _, _, found, *_ = tf.while_loop(
        lambda position, index, *_: tf.size(index) > 0,
        run_segment,
        (0, tf.range(tf.size(rows.done)), found, rows, fixed, state),
        shape_invariants=(
            tf.TensorShape([]),
            tf.TensorShape([None]),
            _free_shapes(found),
            _free_shapes(rows),
            loop_shapes(fixed),
            loop_shapes(state),
        ),
    )
    return _trim(found)


def _run_until_some_are_done(search, position, rows, fixed, state):
    """Steps until enough sentences are done to be worth their leaving."""
    most = (tf.size(rows.done) - 1) // LEAVE_TOGETHER
    prepared = search.prepare(rows)

    def few_are_done(position, rows, *_):
        return tf.reduce_sum(tf.cast(rows.done, tf.int32)) <= most

    def step(position, rows, hypothesis, shared):
        state_now = SearchState(state.sentence, hypothesis, shared)
        rows, stepped = search.advance(
            position, rows, prepared, fixed, state_now
        )
        return position + 1, rows, stepped.hypothesis, stepped.shared

    position, rows, hypothesis, shared = tf.while_loop(
        few_are_done,
        step,
        (position, rows, state.hypothesis, state.shared),
        shape_invariants=(
            tf.TensorShape([]),
            _free_shapes(rows),
            loop_shapes(state.hypothesis),
            loop_shapes(state.shared),
        ),
    )
    return position, rows, SearchState(state.sentence, hypothesis, shared)


def _store(found, index, news, pad_id):
    """Writes what was found of the running sentences among that of all."""
    # The axis is given from the left, here and below: converters may not know
    # the rank of a loop variable, and need it to count from the right.
    axis = found.token_ids.shape.rank - 1
    shape = tf.unstack(tf.shape(found.token_ids), axis + 1)
    shape[axis] = tf.shape(news.token_ids)[axis] - shape[axis]
    padding = tf.fill(tf.stack(shape), pad_id)
    found = found._replace(
        token_ids=tf.concat([found.token_ids, padding], axis=axis)
    )
    # Looked up and not scattered: a runtime that scatters by sums and products
    # would make minus infinity no number, and OpenVINO fails to scatter here.
    # A row of `here` shows where a sentence is among the new ones, if it is.
    # Of `token_ids`: OpenVINO mistakes the length of a vector in a loop.
    batch = tf.shape(found.token_ids)[0]
    sentences = tf.range(batch)
    here = tf.equal(sentences[:, None], index[None, :])
    places = tf.where(here, batch + tf.range(tf.size(index))[None, :], 0)
    sources = tf.maximum(tf.reduce_max(places, axis=1), sentences)
    return tf.nest.map_structure(
        lambda all_rows, rows: tf.gather(
            tf.concat([all_rows, rows], axis=0), sources, axis=0
        ),
        found,
        news,
    )


def _trim(found):
    """Cuts bos and the columns that no hypothesis reaches."""
    longest = tf.reduce_max(
        tf.concat([tf.reshape(found.lengths, (-1,)), [0]], axis=0)
    )
    # gather rather than a slice: to ONNX a slice of unknown length goes as
    # floats of 1e9, which half precision cannot hold.
    axis = found.token_ids.shape.rank - 1
    token_ids = tf.gather(found.token_ids, 1 + tf.range(longest), axis=axis)
    return found._replace(token_ids=token_ids)


def loop_shapes(loop_variables):
    """Tells `tf.while_loop` which axes may change: the first and empty ones.

    Args:
        loop_variables: nest of tensors.

    Returns:
        The same nest of `tf.TensorShape`.
    """

    def loop_shape(tensor):
        if tensor.shape.rank in (0, None):
            return tensor.shape
        return tf.TensorShape(
            [None, *(size or None for size in tensor.shape[1:])]
        )

    return tf.nest.map_structure(loop_shape, loop_variables)


def _free_shapes(nest):
    """Tells `tf.while_loop` that every axis may change."""
    return tf.nest.map_structure(
        lambda tensor: tf.TensorShape([None] * tensor.shape.rank), nest
    )


def when(condition, true_fn, false_fn):
    """`tf.cond` that does not build what is known not to happen."""
    if isinstance(condition, (bool, np.bool_)):
        return true_fn() if condition else false_fn()
    return tf.cond(condition, true_fn, false_fn)
