"""Random numbers of integer arithmetic: exact, even and independent."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.noise import PRIME, seed_keys, uniform
from tests.support.sampling import ROOTS, assert_distributed, noise

SMALLEST, LARGEST = -(2**31), 2**31 - 1
# Where a digit or a sign changes.
EDGES = [
    SMALLEST,
    LARGEST,
    *(edge + i for edge in (0, PRIME, -PRIME, PRIME**2) for i in (-1, 0, 1)),
]


def numbers(seeds, position):
    return uniform(seed_keys(seeds), position)


def numbers_of(seeds, position):
    seeds = np.asarray(seeds, "int32")
    return numbers(tf.constant(seeds), tf.constant(position)).numpy()


def of_lines(first, count):
    """Seeds as the Translator makes them: of the call, and of the line."""
    return np.stack([np.full(count, first), np.arange(count)], axis=1)


def random_seeds(count):
    generator = np.random.default_rng(7)
    return generator.integers(SMALLEST, LARGEST, (count, 2), endpoint=True)


def assert_even(values, bins):
    counts, _ = np.histogram(values, bins, (0, 1))
    assert_distributed(counts, np.full(bins, 1 / bins))


def assert_independent(first, second, bins=20):
    counts, _, _ = np.histogram2d(first, second, bins, ((0, 1), (0, 1)))
    assert_distributed(counts, np.full(bins**2, bins**-2.0))


@pytest.mark.parametrize("position", [0, 1, 2, PRIME - 1, PRIME, LARGEST])
def test_numbers_are_those_of_plain_python(position):
    seeds = [*itertools.product(EDGES, EDGES), *random_seeds(100).tolist()]
    expected = np.array([noise(seed, position) for seed in seeds])
    found = numbers_of(seeds, position)
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


def test_numbers_stay_what_they_are():
    found = [
        float(numbers_of([seed], position)[0])
        for seed in ((0, 0), (42, 7), (-1, 3))
        for position in (0, 9)
    ]
    assert found == [
        0.47881728410720825,
        0.6396760940551758,
        0.9587612748146057,
        0.4503750503063202,
        0.701877772808075,
        0.5761053562164307,
    ]


@pytest.mark.parametrize("compiled", [False, True])
def test_graphs_give_the_numbers_to_the_last_bit(compiled):
    seeds = random_seeds(100_003).astype("int32")
    graph = tf.function(numbers, jit_compile=compiled)
    np.testing.assert_array_equal(
        graph(tf.constant(seeds), tf.constant(5)), numbers_of(seeds, 5)
    )


def test_numbers_are_at_least_0_and_below_1():
    """Even those of which rounding could make a 1."""

    def key_of(left, right):
        """Undoes `noise`: the key whose digits are these at position 0."""
        for root in reversed(ROOTS):
            left, right = right, (left - (right + root) ** 3) % PRIME
        return left, (right - 1) % PRIME

    digits = [*range(40), *range(PRIME - 40, PRIME)]
    wanted = [*itertools.product(digits, digits)]
    keys = np.array([key_of(*pair) for pair in wanted], "int32")
    found = uniform(tf.constant(keys), tf.constant(0)).numpy()
    assert found.min() == 0
    assert found.max() == np.nextafter(np.float32(1), np.float32(0))
    exact = [(left * PRIME + right) / PRIME**2 for left, right in wanted]
    np.testing.assert_allclose(found, exact, rtol=0, atol=2**-23)


def arithmetic_of_the_graph():
    """Yields the operations, and what they take and give for many seeds."""
    with tf.Graph().as_default() as graph:
        seeds = tf.compat.v1.placeholder(tf.int32, (None, 2))
        position = tf.compat.v1.placeholder(tf.int32, ())
        numbers(seeds, position)
        operations = graph.get_operations()
        fetches = [(list(each.inputs), each.outputs) for each in operations]
        many = [*itertools.product(EDGES, EDGES), *random_seeds(20_011)]
        with tf.compat.v1.Session() as session:
            for place in (0, LARGEST):
                values = session.run(fetches, {seeds: many, position: place})
                for operation, found in zip(operations, values, strict=True):
                    yield operation, *found


def test_integers_are_added_multiplied_and_divided_and_never_overflow():
    exactly = {
        "AddV2": lambda one, other: one + other,
        "Sub": lambda one, other: one - other,
        "Mul": lambda one, other: one * other,
        "TruncateDiv": lambda one, other: np.trunc(one / other),
        "FloorMod": lambda one, other: one % other,
    }
    seen = set()
    for operation, inputs, outputs in arithmetic_of_the_graph():
        if operation.type not in exactly or inputs[0].dtype != np.int32:
            continue
        seen.add(operation.type)
        one, other = (value.astype("int64") for value in inputs)
        if operation.type == "FloorMod":
            # Of negative numbers runtimes have remainders of their own.
            assert one.min() >= 0
            assert other.min() > 0
        np.testing.assert_array_equal(
            outputs[0], exactly[operation.type](one, other), operation.name
        )
    assert seen >= {"AddV2", "Mul", "TruncateDiv", "FloorMod"}


def test_numbers_need_no_other_operator():
    """None that is random, keeps a state, or that only some runtimes have."""
    function = tf.function(
        numbers,
        input_signature=[
            tf.TensorSpec((None, 2), tf.int32),
            tf.TensorSpec((), tf.int32),
        ],
    )
    found = {}
    for operation in function.get_concrete_function().graph.get_operations():
        for tensor in operation.outputs:
            types = found.setdefault(tensor.dtype.name, set())
            types.add(operation.type)
    moves = {
        "Placeholder",
        "Const",
        "Identity",
        "ZerosLike",
        "StridedSlice",
        "ConcatV2",
        "Pack",
        "Unpack",
        "Reshape",
    }
    assert found.keys() == {"int32", "float32"}
    assert found["int32"] - moves <= {
        "AddV2",
        "Sub",
        "Mul",
        "TruncateDiv",
        "FloorMod",
    }
    assert found["float32"] - moves == {"Cast", "Mul", "Minimum"}


def test_stirring_is_one_to_one():
    assert len({base**3 % PRIME for base in range(PRIME)}) == PRIME
    # So no two lines of a call have a key in common.
    keys = seed_keys(tf.constant(of_lines(-3, 200_003), tf.int32)).numpy()
    assert keys.min() >= 0
    assert keys.max() < PRIME
    assert len(np.unique(keys, axis=0)) == len(keys)


@pytest.mark.parametrize("half", [0, 1])
def test_near_seeds_differ_whatever_their_sign(half):
    near = np.arange(-2 * PRIME - 3, 2 * PRIME + 3)
    seeds = np.full((len(near), 2), 5)
    seeds[:, half] = near
    keys = seed_keys(tf.constant(seeds, tf.int32)).numpy()
    assert len(np.unique(keys, axis=0)) == len(keys)


@pytest.mark.parametrize("first", [0, 1, 42, -1, SMALLEST, LARGEST])
@pytest.mark.parametrize("position", [0, 13])
def test_numbers_of_the_lines_of_a_call_are_even(first, position):
    values = numbers_of(of_lines(first, 100_000), position)
    assert_even(values, 1000)
    # What is rare must be as often as it should.
    assert_even(values[values < 0.01] * 100, 100)
    assert_even((values[values > 0.99] - 0.99) * 100, 100)


@pytest.mark.parametrize("apart", [1, 2, 7])
def test_neighbouring_lines_are_independent(apart):
    values = numbers_of(of_lines(2, 100_000), 3)
    assert_independent(values[:-apart], values[apart:])


@pytest.mark.parametrize(
    ("one", "other"),
    [((0, 0), (1, 0)), ((5, 0), (-5, 0)), ((7, 0), (7, PRIME))],
)
def test_calls_with_other_seeds_are_independent(one, other):
    first = of_lines(0, 40_000) + one
    second = of_lines(0, 40_000) + other
    assert_independent(numbers_of(first, 0), numbers_of(second, 0))


def test_neighbouring_positions_are_independent():
    seeds = of_lines(9, 40_000)
    values = [numbers_of(seeds, position) for position in range(5)]
    for first, second in itertools.combinations(values, 2):
        assert_independent(first, second)


def test_numbers_along_a_sentence_are_even_and_independent():
    @tf.function
    def along(seeds, count):
        keys = seed_keys(seeds)
        return tf.map_fn(
            lambda position: uniform(keys, position),
            tf.range(count),
            fn_output_signature=tf.float32,
        )

    seeds = [[3, 4], [3, 5], [4, 4], [-1, 0], [LARGEST, SMALLEST]]
    values = along(tf.constant(seeds), 10_000).numpy()
    for row in values.T:
        assert_even(row, 100)
        assert_independent(row[:-1], row[1:])
    for first, second in itertools.combinations(values.T, 2):
        assert_independent(first, second)
