"""What a graph computes for nothing is removed, and its answers stay."""

import collections

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

from keras_transformer.exporting.onnx.convert import simplify_until_stable
from keras_transformer.exporting.onnx.graph import graphs_of

HEADER = '<ir_version: 8, opset_import: ["" : 18]>'
LOGITS = np.random.default_rng(0).normal(size=(3, 7)).astype("float32")


def run(model, feed):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)


def tidied(text, feed):
    """Tidies a graph and compares its answers; counts operators by graph."""
    model = onnx.parser.parse_model(HEADER + text)
    expected = run(model, feed)
    simplify_until_stable(model.graph)
    onnx.checker.check_model(model, full_check=True)
    for one, other in zip(run(model, feed), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return [
        collections.Counter(node.op_type for node in part.node)
        for part in graphs_of(model.graph)
    ]


def test_integers_are_not_cast_there_and_back():
    [operators] = tidied(
        """g (float[B,V] x) => (float[B,K,1] y)
        <int64[1] two = {2}, int64[1] last = {-1}> {
            values, index = TopK(x, two)
            narrow = Cast<to = 6>(index)
            wide = Cast<to = 7>(narrow)
            places = Unsqueeze(wide, last)
            found = GatherND<batch_dims = 1>(x, places)
            y = Unsqueeze(found, last)
        }""",
        {"x": LOGITS},
    )
    assert "Cast" not in operators


def test_a_cast_that_another_needs_stays():
    [operators] = tidied(
        """g (float[B,V] x) => (int32[B,K] ids, float[B,K] y)
        <int64[1] two = {2}, int64[1] last = {-1}> {
            values, index = TopK(x, two)
            ids = Cast<to = 6>(index)
            wide = Cast<to = 7>(ids)
            places = Unsqueeze(wide, last)
            y = GatherND<batch_dims = 1>(x, places)
        }""",
        {"x": LOGITS},
    )
    assert operators["Cast"] == 1


def test_a_cast_that_changes_numbers_stays():
    [operators] = tidied(
        """g (float[B,V] x) => (int64[B,V] y) {
            narrow = Cast<to = 6>(x)
            wide = Cast<to = 7>(narrow)
            y = Neg(wide)
        }""",
        {"x": LOGITS * 9},
    )
    assert operators["Cast"] == 2


def test_what_is_computed_twice_is_computed_once():
    [operators] = tidied(
        """g (float[B,V] x) => (float[B,V] y)
        <float one = {2.0}, float other = {2.0}, float third = {3.0}> {
            a = Mul(x, one)
            b = Mul(x, other)
            c = Mul(x, third)
            d = Add(a, b)
            y = Add(d, c)
        }""",
        {"x": LOGITS},
    )
    assert operators == {"Mul": 2, "Add": 2}


def test_axes_that_are_put_back_are_never_taken_away():
    [operators] = tidied(
        """g (float[B,V] x) => (float[B,V] y)
        <int64[1] zero = {0}, int64[1] one = {1}> {
            some = Slice(x, zero, one, one, one)
            gone = Squeeze(some, one)
            back = Unsqueeze(gone, one)
            y = Add(x, back)
        }""",
        {"x": LOGITS},
    )
    assert operators == {"Slice": 1, "Add": 1}


def test_gather_counts_from_the_end_by_itself():
    [operators] = tidied(
        """g (int32[R] ids) => (float[R] y)
        <int32 zero = {0}, int32 size = {3},
         float[3] x = {1.0, 2.0, 3.0}> {
            negative = Less(ids, zero)
            moved = Add(ids, size)
            places = Where(negative, moved, ids)
            y = Gather(x, places)
        }""",
        {"ids": np.array([0, -1, 2, -3], "int32")},
    )
    assert operators == {"Gather": 1}


def test_other_choices_by_sign_stay():
    [operators] = tidied(
        """g (float[V,D] x, int32[R] ids) => (float[R,D] y, int32[R] places)
        <int32 zero = {0}, int32 size = {3}> {
            negative = Less(ids, zero)
            moved = Add(ids, size)
            places = Where(negative, moved, ids)
            y = Gather(x, places)
        }""",
        {"x": LOGITS, "ids": np.array([0, -1, 2, -3], "int32")},
    )
    assert operators["Where"] == 1


LOOP = """g (float[B,V] x, float step) => (float[B,V] y)
<int64 count = {3}, bool true = {1}, float one = {1.0}> {
    y = Loop(count, true, x) <body = body (
        int64 i, bool go, float[B,V] state
    ) => (bool on, float[B,V] next)
    <float two = {2.0}, float limit = {0.5}> {
        BODY
        on = Identity(go)
    }>
}"""


@pytest.mark.parametrize("step", [0.25, 4.0])
def test_what_stays_the_same_in_a_loop_is_computed_before_it(step):
    outer, body = tidied(
        LOOP.replace(
            "BODY",
            """double = Mul(step, two)
            more = Add(double, one)
            next = Add(state, more)""",
        ),
        {"x": LOGITS, "step": np.array(step, "float32")},
    )
    assert outer == {"Mul": 1, "Add": 1, "Loop": 1}
    assert body == {"Add": 1, "Identity": 1}


@pytest.mark.parametrize("step", [0.25, 4.0])
def test_conditions_within_a_loop_give_up_what_stays_the_same(step):
    """They read the constants of the conditions around them, too."""
    outer, body, *_ = tidied(
        LOOP.replace(
            "BODY",
            """large = Greater(state, limit)
            any = Cast<to = 7>(large)
            amount = ReduceMax<keepdims = 0>(any)
            is = Cast<to = 9>(amount)
            next = If(is) <
                then_branch = yes () => (float[B,V] a)
                <float half = {0.5}> {
                    is_large = Greater(step, half)
                    a = If(is_large) <
                        then_branch = inner () => (float[B,V] b) {
                            less = Mul(step, half)
                            b = Add(state, less)
                        },
                        else_branch = other () => (float[B,V] c) {
                            c = Sub(state, half)
                        }
                    >
                },
                else_branch = no () => (float[B,V] d) {
                    d = Add(state, step)
                }
            >""",
        ),
        {"x": LOGITS, "step": np.array(step, "float32")},
    )
    assert outer == {"Mul": 1, "Greater": 1, "Loop": 1}
    assert body["If"] == 1


def test_a_transpose_is_done_once_before_a_loop():
    outer, body = tidied(
        """g (float[B,V] x, float[V,V] w) => (float[B,V] y)
        <int64 count = {3}, bool true = {1}> {
            y = Loop(count, true, x) <body = body (
                int64 i, bool go, float[B,V] state
            ) => (bool on, float[B,V] next) {
                turned = Transpose<perm = [1, 0]>(w)
                next = MatMul(state, turned)
                on = Identity(go)
            }>
        }""",
        {"x": LOGITS, "w": np.eye(7, dtype="float32")[::-1].copy()},
    )
    assert outer["Transpose"] == 1
    assert "Transpose" not in body


def test_a_cast_by_way_of_another_type_stays():
    """5 as a bool is 1."""
    [operators] = tidied(
        """g (float[B,V] x) => (int64[2] y) {
            shape = Shape(x)
            any = Cast<to = 9>(shape)
            wide = Cast<to = 7>(any)
            y = Neg(wide)
        }""",
        {"x": LOGITS},
    )
    assert operators["Cast"] == 2


def test_ids_counted_from_elsewhere_than_the_end_stay():
    [operators] = tidied(
        """g (int32[R] ids) => (float[R] y)
        <int32 zero = {0}, int32 other = {2},
         float[3] x = {1.0, 2.0, 3.0}> {
            negative = Less(ids, zero)
            moved = Add(ids, other)
            places = Where(negative, moved, ids)
            y = Gather(x, places)
        }""",
        {"ids": np.array([0, -1, 2, -2], "int32")},
    )
    assert operators["Where"] == 1


def test_what_is_drawn_is_drawn_each_time():
    [operators] = tidied(
        """g (float[B,V] x) => (float[B,V] y) {
            a = RandomUniformLike<seed = 1.0>(x)
            b = RandomUniformLike<seed = 1.0>(x)
            c = Sub(a, b)
            d = Mul(c, c)
            e = Sub(d, d)
            y = Add(e, x)
        }""",
        {"x": LOGITS},
    )
    assert operators["RandomUniformLike"] == 2
