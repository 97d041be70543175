"""Models that are tables, to test a search without a network."""

import functools

import numpy as np
import tensorflow as tf

from keras_transformer.decoding import (
    Constraints,
    Hypotheses,
    SearchState,
    beam_search,
    greedy_search,
)
from keras_transformer.decoding.options import DEFAULTS, options_of

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


def random_attention(count, length, vocab_size, seed, heads=2, width=3):
    """Draws attention `(count, length, vocab_size, heads, width)`.

    It sums to 1 over the source, of which rows have different lengths: at
    least one position, and 0 on the rest.
    """
    generator = np.random.default_rng(seed)
    shape = (count, length, vocab_size, heads, width)
    weights = generator.uniform(0.01, 1.0, size=shape)
    for row in range(count):
        weights[row, ..., 1 + row % width :] = 0.0
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights.astype("float32")


def padded(rows):
    """Makes an array of lists of different lengths, with 0 at the end."""
    width = max(map(len, rows), default=0)
    array = np.zeros((len(rows), width), "int32")
    for row, ids in zip(array, rows, strict=True):
        row[: len(ids)] = ids
    return array


def table_step(token_ids, position, state):
    """Looks the logits up in tables `(B, L, V, V)`.

    `state.sentence` is the tables, or a pair of them and of attention
    `(B, L, V, H, S)`.
    """
    if not isinstance(state.sentence, tuple):
        return _look_up(state.sentence, token_ids, position)[0], state
    tables, attention = state.sentence
    logits, _ = _look_up(tables, token_ids, position)
    _, weights = _look_up(attention, token_ids, position)
    weights = tf.transpose(weights, (0, 2, 1, 3))  # (B, H, K, S)
    return logits, state, weights


def _look_up(tables, token_ids, position):
    """Gives the entries of the last ids, as `(R, ...)` and `(B, K, ...)`."""
    batch, length = tf.unstack(tf.shape(tables)[:2])
    entries = tf.gather(
        tables[:, tf.minimum(position, length - 1)],
        tf.reshape(token_ids, (batch, -1)),
        batch_dims=1,
    )
    shape = tf.concat([tf.shape(token_ids), tf.shape(entries)[2:]], axis=0)
    return tf.reshape(entries, shape), entries


def option_specs(strategy):
    """Gives the `tf.TensorSpec`s of the options of a search, by name."""
    return {
        option.name: tf.TensorSpec(
            [None] * len(option.shape), option.dtype, option.name
        )
        for option in options_of(strategy)
        if option.name != "max_length"  # Searches take one of each row.
    }


def as_keywords(options):
    """Puts those of options that are constraints into one `Constraints`."""
    options = dict(options)
    names = [name for name in Constraints._fields if name in options]
    constraints = Constraints(**{name: options.pop(name) for name in names})
    return {"constraints": constraints, **options}


def beam(tables, caps, num_hypotheses=1, attention=None, **options):
    """Runs `beam_search` in a graph over one table a row.

    Args:
        tables: array `(B, L, V, V)`.
        caps: list of `B` ints.
        num_hypotheses: int.
        attention: array `(B, L, V, H, S)`; by default there is none.
        **options: of `beam_search`.

    Returns:
        `Hypotheses` of NumPy arrays.
    """
    options["num_hypotheses"] = num_hypotheses
    return _run(beam_search, "beam", tables, caps, attention, options)


def greedy(tables, caps, attention=None, **options):
    """Runs `greedy_search` as `beam` does."""
    return _run(greedy_search, "greedy", tables, caps, attention, options)


def found(result, row=0):
    """Lists the hypotheses of a row, without padding and unused slots."""
    ids, lengths = result.token_ids[row], result.lengths[row]
    return [
        tuple(ids[n, : lengths[n]].tolist())
        for n in range(len(lengths))
        if result.scores[row, n] > IMPOSSIBLE
    ]


def _run(search, strategy, tables, caps, attention, options):
    tables = np.asarray(tables)
    if attention is None:
        attention = np.zeros((*tables.shape[:3], 1, 1))
    tensors = {
        name: tf.constant(options.pop(name, DEFAULTS[name]), spec.dtype)
        for name, spec in option_specs(strategy).items()
    }
    assert not options, f"unknown options {sorted(options)}"
    result = _graph(search, strategy, tables.dtype.name)(
        tf.constant(tables),
        tf.constant(attention, tf.float32),
        tf.constant(np.asarray(caps, "int32")),
        tensors,
    )
    return Hypotheses(*[tensor.numpy() for tensor in result])


# One trace serves all tests, because options are tensors.
@functools.cache
def _graph(search, strategy, dtype):
    @tf.function(
        input_signature=[
            tf.TensorSpec([None] * 4, dtype),
            tf.TensorSpec([None] * 5, tf.float32),
            tf.TensorSpec([None], tf.int32),
            option_specs(strategy),
        ],
        autograph=False,
    )
    def run(tables, attention, caps, options):
        state = SearchState(sentence=(tables, attention))
        return search(table_step, state, caps, **as_keywords(options))

    return run
