"""Random numbers of integer arithmetic: exact, even and independent."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.noise import (
    PRIME,
    seed_keys,
    step_keys,
    uniform,
)
from tests.support.sampling import (
    BELOW_ONE,
    ROOTS,
    assert_distributed,
    noise,
)

SMALLEST, LARGEST = -(2**31), 2**31 - 1
# Where a digit or a sign changes.
EDGES = [
    SMALLEST,
    LARGEST,
    *(edge + i for edge in (0, PRIME, -PRIME, PRIME**2) for i in (-1, 0, 1)),
]


def numbers(seeds, position, token_ids):
    return uniform(step_keys(seed_keys(seeds), position), token_ids)


def numbers_of(seeds, position, token_ids=(3,)):
    """Gives an array `(B, N)`, or `(B,)` for one id."""
    values = numbers(
        tf.constant(np.asarray(seeds, "int32")),
        tf.constant(position),
        tf.constant(token_ids, tf.int32)[None, :],
    ).numpy()
    return values[:, 0] if len(token_ids) == 1 else values


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
    token_ids = (0, 1, 31, PRIME - 1, PRIME, 99_991)
    expected = np.array(
        [
            [noise(tuple(seed), position, each) for each in token_ids]
            for seed in seeds
        ]
    )
    found = numbers_of(seeds, position, token_ids)
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_array_equal(found, expected)


def test_numbers_stay_what_they_are():
    found = [
        float(numbers_of([seed], position)[0])
        for seed in ((0, 0), (42, 7), (-1, 3))
        for position in (0, 9)
    ]
    assert found == [
        0.5379889607429504,
        0.12163963913917542,
        0.8035529851913452,
        0.6135298013687134,
        0.6290781497955322,
        0.09270893037319183,
    ]


@pytest.mark.parametrize("compiled", [False, True])
def test_graphs_give_the_numbers_to_the_last_bit(compiled):
    seeds = random_seeds(10_007).astype("int32")
    token_ids = np.arange(23, dtype="int32")
    graph = tf.function(numbers, jit_compile=compiled)
    np.testing.assert_array_equal(
        graph(tf.constant(seeds), tf.constant(5), token_ids[None, :]),
        numbers_of(seeds, 5, token_ids),
    )


def test_each_row_may_have_ids_of_its_own():
    seeds, token_ids = (
        random_seeds(7),
        np.arange(35, dtype="int32").reshape(7, 5),
    )
    found = numbers(tf.constant(seeds, tf.int32), 2, token_ids)
    for row in range(7):
        np.testing.assert_array_equal(
            found[row], numbers_of(seeds[[row]], 2, token_ids[row])[0]
        )


def test_numbers_are_above_0_and_below_1():
    """Even those of which rounding could make a 1."""

    def key_of(left, right):
        """Undoes `uniform`: the key whose digits are these for id 0."""
        for root in reversed(ROOTS[:4]):
            left, right = right, (left - (right + root) ** 2) % PRIME
        return left, right

    digits = [*range(40), *range(PRIME - 40, PRIME)]
    wanted = [*itertools.product(digits, digits)]
    keys = np.array([key_of(*pair) for pair in wanted], "int32")
    found = uniform(tf.constant(keys), tf.constant([[0]])).numpy()[:, 0]
    exact = [(left * PRIME + right + 0.5) / PRIME**2 for left, right in wanted]
    assert found.min() == np.float32(0.5) * np.float32(1 / PRIME**2)
    assert found.max() == BELOW_ONE
    # However small they are.
    np.testing.assert_allclose(found, exact, rtol=2**-22)


def arithmetic_of_the_graph():
    """Yields the operations, and what they take and give for many seeds."""
    with tf.Graph().as_default() as graph:
        seeds = tf.compat.v1.placeholder(tf.int32, (None, 2))
        position = tf.compat.v1.placeholder(tf.int32, ())
        token_ids = tf.compat.v1.placeholder(tf.int32, (1, None))
        numbers(seeds, position, token_ids)
        operations = graph.get_operations()
        fetches = [(list(each.inputs), each.outputs) for each in operations]
        many = [*itertools.product(EDGES, EDGES), *random_seeds(20_011)]
        with tf.compat.v1.Session() as session:
            for place in (0, LARGEST):
                values = session.run(
                    fetches,
                    {
                        seeds: many,
                        position: place,
                        token_ids: [[0, PRIME - 1, PRIME, LARGEST]],
                    },
                )
                for operation, found in zip(operations, values, strict=True):
                    yield operation, *found


def test_integers_are_added_multiplied_and_divided_and_never_overflow():
    exactly = {
        "AddV2": lambda one, other: one + other,
        "Sub": lambda one, other: one - other,
        "Mul": lambda one, other: one * other,
        "TruncateDiv": lambda one, other: np.trunc(one / other),
    }
    seen = set()
    for operation, inputs, outputs in arithmetic_of_the_graph():
        if operation.type not in exactly or inputs[0].dtype != np.int32:
            continue
        seen.add(operation.type)
        one, other = (value.astype("int64") for value in inputs)
        np.testing.assert_array_equal(
            outputs[0], exactly[operation.type](one, other), operation.name
        )
    assert seen == set(exactly)


def test_no_integers_whatever_overflow():
    """The largest and the least of each sum, if all comes together."""
    left, high = 2 * PRIME - 2, LARGEST // PRIME
    assert left**2 + PRIME - 1 + high + 5 * PRIME <= LARGEST
    for root in ROOTS[1:]:
        assert 0 <= root < PRIME
        assert (PRIME - 1 + root) ** 2 + left <= LARGEST
    assert -high - 2 + 5 * PRIME > 0
    assert PRIME**2 <= LARGEST


def test_numbers_need_no_other_operator():
    """None that is random, keeps a state, or that only some runtimes have."""
    function = tf.function(
        numbers,
        input_signature=[
            tf.TensorSpec((None, 2), tf.int32),
            tf.TensorSpec((), tf.int32),
            tf.TensorSpec((None, None), tf.int32),
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
        "Reshape",
    }
    assert found.keys() == {"int32", "bool", "float32"}
    assert found["int32"] - moves == {
        "AddV2",
        "Sub",
        "Mul",
        "TruncateDiv",
        "Cast",
    }
    assert found["bool"] - moves == {"Less"}
    assert found["float32"] - moves == {"Cast", "AddV2", "Mul", "Minimum"}


def test_stirring_is_one_to_one():
    """So no two lines of a call have a key in common."""
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
            lambda position: uniform(step_keys(keys, position), [[5]])[:, 0],
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


def test_numbers_of_the_ids_are_even_and_independent():
    values = numbers_of([(8, 1), (8, 2), (9, 1)], 4, range(50_000))
    for row in values:
        assert_even(row, 1000)
        for apart in (1, 2, 3, 7, 100, PRIME):
            assert_independent(row[:-apart], row[apart:])
    for first, second in itertools.combinations(values, 2):
        assert_independent(first, second)


@pytest.mark.parametrize(
    "token_ids",
    [(0, 1), (4, 9_999), (3, 3 + PRIME), (PRIME - 1, PRIME), (5, 6 + PRIME)],
)
def test_two_ids_are_independent_over_all_lines(token_ids):
    first, second = numbers_of(of_lines(6, 100_003), 2, token_ids).T
    assert_independent(first, second)
    # Nor are their last digits, their sum or their difference telling.
    assert_independent(first * 997 % 1, second * 997 % 1)
    assert_even((first + second) % 1, 1000)
    assert_even((first - second) % 1, 1000)


def test_four_ids_in_a_row_are_independent_over_all_lines():
    """Of polynomials of low degree differences of differences are equal."""
    one, two, three, four = numbers_of(of_lines(1, 100_003), 0, range(4)).T
    assert_even((one - 2 * two + three) % 1, 1000)
    assert_even((one - 3 * two + 3 * three - four) % 1, 1000)
    bins = (np.stack([one, two, three]) * 10).astype(int)
    counts = np.bincount(bins.T @ [100, 10, 1], minlength=1000)
    assert_distributed(counts, np.full(1000, 1e-3))


def test_each_of_equal_ids_is_as_often_the_least():
    values = numbers_of(of_lines(5, 40_009), 7, range(100))
    counts = np.bincount(values.argmin(axis=1), minlength=100)
    assert_distributed(counts, np.full(100, 0.01))
    # Which is spread as the least of a hundred.
    assert_even(1 - (1 - values.min(axis=1).astype("float64")) ** 100, 100)
