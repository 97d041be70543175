"""Models that are tables, to test a search without a network."""

import functools

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import (
    Hypotheses,
    SearchState,
    beam_search,
    greedy_search,
)

IMPOSSIBLE = float("-inf")


def random_tables(count, length, vocab_size, seed, scale=2.0):
    """Draws logits `(count, length, vocab_size, vocab_size)`."""
    generator = np.random.default_rng(seed)
    shape = (count, length, vocab_size, vocab_size)
    return generator.normal(scale=scale, size=shape).astype("float32")


def path_table(length, vocab_size, *steps):
    """Makes a table `(length, V, V)` where all but some steps is impossible.

    Args:
        length: int, number of positions.
        vocab_size: int, `V`.
        *steps: `(position, last id, {next id: probability})`; position None
            is all positions.
    """
    table = np.full((length, vocab_size, vocab_size), IMPOSSIBLE, "float32")
    for position, last, options in steps:
        for token_id, probability in options.items():
            where = slice(None) if position is None else position
            table[where, last, token_id] = np.log(probability)
    return table


def swap_table():
    """A table where the likeliest first id is not that of the best sentence.

    Ids 3, 4, 5 are x, y, z. By raw probability x eos wins (-1.0); y y y y y
    eos (-1.3) wins once longer sentences are helped.
    """
    q = 0.885706
    return path_table(
        7, 6,
        (0, 1, {3: 0.5, 4: 0.5}),
        (None, 3, {2: 0.735759, 5: 0.264241}),
        (None, 5, {2: 1.0}),
        *[(position, 4, {4: q, 5: 1 - q}) for position in range(1, 5)],
        (5, 4, {2: q, 5: 1 - q}),
    )  # fmt: skip


def table_step(token_ids, position, state):
    """Looks the logits up in `state.sentence`, tables `(B, L, V, V)`."""
    tables = state.sentence
    batch, length, _, vocab_size = tf.unstack(tf.shape(tables))
    logits = tf.gather(
        tables[:, tf.minimum(position, length - 1)],
        tf.reshape(token_ids, (batch, -1)),
        batch_dims=1,
    )
    return tf.reshape(logits, (-1, vocab_size)), state


def beam(tables, caps, num_hypotheses=1, **options):
    """Runs `beam_search` in a graph over one table a row.

    Args:
        tables: array `(B, L, V, V)`.
        caps: list of `B` ints.
        num_hypotheses: int.
        **options: of `beam_search`.

    Returns:
        `Hypotheses` of NumPy arrays.
    """
    options = {
        "beam_size": 4,
        "length_penalty": 0.6,
        "min_length": 0,
        "forbidden_ids": (0, 1),
        "num_hypotheses": num_hypotheses,
        **options,
    }
    return _run(_beam_graph, tables, caps, options)


def greedy(tables, caps, **options):
    """Runs `greedy_search` as `beam` does."""
    options = {"min_length": 0, "forbidden_ids": (0, 1), **options}
    return _run(_greedy_graph, tables, caps, options)


def found(result, row=0):
    """Lists the hypotheses of a row, without padding and unused slots."""
    ids, lengths = result.token_ids[row], result.lengths[row]
    return [
        tuple(ids[n, : lengths[n]].tolist())
        for n in range(len(lengths))
        if result.scores[row, n] > IMPOSSIBLE
    ]


def _run(make_graph, tables, caps, options):
    tables = np.asarray(tables)
    graph = make_graph(tables.dtype.name)
    options = {
        name: tf.constant(
            value, tf.float32 if name == "length_penalty" else tf.int32
        )
        for name, value in options.items()
    }
    caps = tf.constant(np.asarray(caps, "int32"))
    result = graph(tf.constant(tables), caps, **options)
    return Hypotheses(*[tensor.numpy() for tensor in result])


# One trace serves all tests, because options are tensors.
@functools.cache
def _beam_graph(dtype):
    integer = tf.TensorSpec((), tf.int32)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None] * 4, dtype),
            tf.TensorSpec([None], tf.int32),
            integer,
            integer,
            tf.TensorSpec((), tf.float32),
            integer,
            tf.TensorSpec([None], tf.int32),
        ]
    )
    def run(
        tables,
        caps,
        beam_size,
        num_hypotheses,
        length_penalty,
        min_length,
        forbidden_ids,
    ):
        return beam_search(
            table_step,
            SearchState(sentence=tables),
            caps,
            beam_size=beam_size,
            num_hypotheses=num_hypotheses,
            length_penalty=length_penalty,
            min_length=min_length,
            forbidden_ids=forbidden_ids,
        )

    return run


@functools.cache
def _greedy_graph(dtype):
    @tf.function(
        input_signature=[
            tf.TensorSpec([None] * 4, dtype),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec((), tf.int32),
            tf.TensorSpec([None], tf.int32),
        ]
    )
    def run(tables, caps, min_length, forbidden_ids):
        return greedy_search(
            table_step,
            SearchState(sentence=tables),
            caps,
            min_length=min_length,
            forbidden_ids=forbidden_ids,
        )

    return run
