"""Loops of ONNX graphs: what never changes in one is read from outside."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from keras_transformer.exporting.onnx.loops import take_out_variables

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
WEIGHTS = np.random.default_rng(0).normal(size=(3, 3)).astype("float32")
START = np.random.default_rng(1).normal(size=(2, 3)).astype("float32")


def value(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def body(nodes, variables, results, name="body", scalar=()):
    """A loop body: counter, condition, variables to condition, results."""
    go_on = helper.make_node("Identity", [f"{name}_if"], [f"{name}_then"])
    return helper.make_graph(
        [go_on, *nodes],
        name,
        [
            value(f"{name}_i", INT64, scalar),
            value(f"{name}_if", BOOL, scalar),
            *map(value, variables),
        ],
        [value(f"{name}_then", BOOL), *map(value, results)],
    )


def loop(inputs, outputs, graph):
    return helper.make_node("Loop", ["times", "", *inputs], outputs, body=graph)


def model_of(nodes, outputs, inputs=(("x", FLOAT, [2, 3]),)):
    """A model that may read `x`, `w` and `times`, the number 3."""
    graph = helper.make_graph(
        nodes,
        "model",
        [value(*each) for each in inputs],
        [value(name, FLOAT, [None, None]) for name in outputs],
        [
            numpy_helper.from_array(WEIGHTS, "w"),
            numpy_helper.from_array(np.array(3), "times"),
        ],
    )
    opsets = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, ir_version=9, opset_imports=opsets)


def run(model, **feed):
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": START, **feed})


def tidied(model):
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    take_out_variables(copy.graph)
    return copy


def assert_same_answers(model, copy, **feed):
    for one, other in zip(run(model, **feed), run(copy, **feed), strict=True):
        np.testing.assert_array_equal(one, other)


def loops_of(graph):
    for node in graph.node:
        if node.op_type == "Loop":
            yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from loops_of(attribute.g)


def names(values):
    return [each.name for each in values]


def matmul_loop(copies=False):
    """x becomes x w w w; w is a loop variable that never changes."""
    nodes = [helper.make_node("MatMul", ["b_x", "b_w"], ["b_y"])]
    handed_on = "b_w"
    if copies:
        nodes.append(helper.make_node("Identity", ["b_w"], ["b_w2"]))
        handed_on = "b_w2"
    graph = body(nodes, ["b_w", "b_x"], [handed_on, "b_y"])
    return loop(["w", "x"], ["w_out", "y"], graph)


@pytest.mark.parametrize("copies", [False, True])
def test_what_never_changes_is_read_from_outside(copies):
    model = model_of([matmul_loop(copies)], ["y"])
    copy = tidied(model)
    [node] = loops_of(copy.graph)
    assert list(node.input) == ["times", "", "x"]
    assert list(node.output) == ["y"]
    graph = node.attribute[0].g
    assert names(graph.input) == ["body_i", "body_if", "b_x"]
    assert names(graph.output) == ["body_then", "b_y"]
    [product] = [n for n in graph.node if n.op_type == "MatMul"]
    assert list(product.input) == ["b_x", "w"]
    assert_same_answers(model, copy)
    [found] = run(copy)
    np.testing.assert_allclose(
        found, START @ WEIGHTS @ WEIGHTS @ WEIGHTS, rtol=1e-5
    )


def test_who_reads_an_invariant_after_the_loop_reads_it_from_outside():
    after = helper.make_node("MatMul", ["y", "w_out"], ["z"])
    model = model_of([matmul_loop(), after], ["z"])
    copy = tidied(model)
    assert list(copy.graph.node[1].input) == ["y", "w"]
    assert_same_answers(model, copy)


def test_who_reads_an_invariant_in_a_branch_reads_it_from_outside():
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node("MatMul", ["y", matrix], [f"{name}_z"])],
            name,
            [],
            [value(f"{name}_z")],
        )
        for name, matrix in (("then", "w_out"), ("else", "w"))
    }
    branch = helper.make_node("If", ["flag"], ["z"], **branches)
    inputs = (("x", FLOAT, [2, 3]), ("flag", BOOL, []))
    model = model_of([matmul_loop(), branch], ["z"], inputs)
    copy = tidied(model)
    [node] = loops_of(copy.graph)
    assert list(node.output) == ["y"]
    for flag in (True, False):
        assert_same_answers(model, copy, flag=np.array(flag))


def test_an_invariant_that_is_an_output_of_the_graph_stays():
    model = model_of([matmul_loop()], ["y", "w_out"])
    copy = tidied(model)
    [node] = loops_of(copy.graph)
    assert list(node.output) == ["w_out", "y"]
    assert names(node.attribute[0].g.input)[2:] == ["b_w", "b_x"]
    assert_same_answers(model, copy)
    np.testing.assert_array_equal(run(copy)[1], WEIGHTS)


def test_what_changes_stays():
    """Variables that swap places are handed on, but not as they are."""
    graph = body(
        [helper.make_node("Add", ["b_c", "b_a"], ["b_d"])],
        ["b_a", "b_b", "b_c"],
        ["b_b", "b_a", "b_d"],
    )
    model = model_of(
        [
            helper.make_node("Neg", ["x"], ["minus_x"]),
            loop(["x", "minus_x", "x"], ["a", "b", "c"], graph),
        ],
        ["a", "b", "c"],
    )
    inner = model_of(
        [
            helper.make_node("Neg", ["x"], ["minus_x"]),
            loop(["x", "minus_x", "x"], ["a", "b", "c"], graph),
            helper.make_node("Sub", ["a", "c"], ["z"]),
        ],
        ["z"],
    )
    for each in (model, inner):
        copy = tidied(each)
        [node] = loops_of(copy.graph)
        assert len(node.input) == 5 and len(node.output) == 3
        assert_same_answers(each, copy)
    a, b, c = run(tidied(model))
    np.testing.assert_array_equal(a, -START)
    np.testing.assert_array_equal(b, START)
    np.testing.assert_array_equal(c, START + START)


def nested(branches=False):
    """A loop in a loop, which hand `w` on; the inner one may branch on it."""
    nodes = [helper.make_node("MatMul", ["c_x", "c_w"], ["c_y"])]
    if branches:
        multiply, negate = (
            helper.make_graph(
                [helper.make_node(operator, inputs, [f"{name}_y"])],
                name,
                [],
                [value(f"{name}_y")],
            )
            for name, operator, inputs in (
                ("multiply", "MatMul", ["c_x", "c_w"]),
                ("negate", "Sub", ["c_x", "b_x"]),
            )
        )
        nodes = [
            helper.make_node("Cast", ["inner_i"], ["later"], to=BOOL),
            helper.make_node(
                "If",
                ["later"],
                ["c_y"],
                then_branch=multiply,
                else_branch=negate,
            ),
        ]
    inner = body(nodes, ["c_x", "c_w"], ["c_y", "c_w"], "inner")
    outer = body(
        [
            loop(["b_x", "b_w"], ["b_y", "b_w_out"], inner),
            helper.make_node("Add", ["b_y", "b_x"], ["b_z"]),
        ],
        ["b_w", "b_x"],
        ["b_w", "b_z"],
        "outer",
    )
    return loop(["w", "x"], ["w_out", "y"], outer)


@pytest.mark.parametrize("branches", [False, True])
def test_loops_in_loops_and_branches_are_tidied_as_well(branches):
    model = model_of([nested(branches)], ["y"])
    copy = tidied(model)
    outer, inner = loops_of(copy.graph)
    assert list(outer.input) == ["times", "", "x"]
    assert list(inner.input) == ["times", "", "b_x"]
    assert list(outer.output) == ["y"] and list(inner.output) == ["b_y"]
    products = [
        node
        for graph in (inner.attribute[0].g, *branches_of(inner))
        for node in graph.node
        if node.op_type == "MatMul"
    ]
    assert [list(node.input) for node in products] == [["c_x", "w"]]
    assert_same_answers(model, copy)


def branches_of(loop):
    for node in loop.attribute[0].g.node:
        if node.op_type == "If":
            yield from (attribute.g for attribute in node.attribute)


def test_an_invariant_that_a_body_hands_out_of_a_loop_stays_right():
    """The inner loop gives what the outer one puts out."""
    inner = body(
        [helper.make_node("MatMul", ["c_x", "c_w"], ["c_y"])],
        ["c_x", "c_w"],
        ["c_y", "c_w"],
        "inner",
    )
    outer = body(
        [loop(["b_x", "b_w"], ["b_y", "b_w_out"], inner)],
        ["b_w", "b_x"],
        ["b_w_out", "b_y"],
        "outer",
    )
    model = model_of(
        [
            loop(["w", "x"], ["w_out", "y"], outer),
            helper.make_node("MatMul", ["y", "w_out"], ["z"]),
        ],
        ["z"],
    )
    assert_same_answers(model, tidied(model))


def test_a_loop_in_a_branch_is_tidied():
    then = helper.make_graph([matmul_loop()], "then", [], [value("y")])
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["same"])],
        "other",
        [],
        [value("same")],
    )
    branch = helper.make_node(
        "If", ["flag"], ["z"], then_branch=then, else_branch=other
    )
    inputs = (("x", FLOAT, [2, 3]), ("flag", BOOL, []))
    model = model_of([branch], ["z"], inputs)
    copy = tidied(model)
    [node] = loops_of(copy.graph)
    assert list(node.input) == ["times", "", "x"]
    for flag in (True, False):
        assert_same_answers(model, copy, flag=np.array(flag))


def test_counter_and_condition_are_declared_scalars():
    """The converter gives them no shape, with which no loop can start."""
    graph = body(
        [helper.make_node("MatMul", ["b_x", "w"], ["b_y"])],
        ["b_x"],
        ["b_y"],
        scalar=None,
    )
    model = model_of([loop(["x"], ["y"], graph)], ["y"])
    for each in graph.input[:2]:
        assert not each.type.tensor_type.HasField("shape")
    copy = tidied(model)
    [node] = loops_of(copy.graph)
    for each in node.attribute[0].g.input[:2]:
        tensor = each.type.tensor_type
        assert tensor.HasField("shape") and not tensor.shape.dim
    [found] = run(copy)
    expected = START @ WEIGHTS @ WEIGHTS @ WEIGHTS
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_graph_without_loops_stays_as_it_is():
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], ["y"])
    assert tidied(model) == model
