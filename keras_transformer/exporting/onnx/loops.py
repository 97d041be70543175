"""What a loop reads from outside: variables, what stays the same, weights.

A TensorFlow loop gets all it reads as loop variables, the weights of the model
among them, and so does the `Loop` it is converted to. There they hide from a
runtime that they are constant, so that it can neither prepare them for its
matrix products nor leave them where they are.
"""

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from keras_transformer.exporting.onnx.graph import (
    DRAWS,
    graphs_of,
    rename_all,
    set_nodes,
)

PRODUCTS = ("MatMul", "MatMulInteger")


def take_out_variables(graph):
    """Reads what never changes in a loop from outside of it, in place.

    Args:
        graph: `onnx.GraphProto`; its subgraphs are changed as well.
    """
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                # From within, for what only passes through an inner loop.
                take_out_variables(attribute.g)
                if node.op_type == "Loop":
                    _declare_scalars(attribute.g)
                    _take_out(node, attribute.g, graph)


def _declare_scalars(body):
    """Gives counter and condition their shape, which a runtime asks for."""
    for value in body.input[:2]:
        value.type.tensor_type.ClearField("shape")
        value.type.tensor_type.shape.SetInParent()


def _take_out(loop, body, graph):
    """Takes loop variables out that a body hands on as they are.

    A `Loop` has the inputs trip count, condition, variables and the outputs
    variables; its body has counter, condition, variables and condition,
    variables.
    """
    copies = {
        node.output[0]: node.input[0]
        for node in body.node
        if node.op_type == "Identity"
    }
    results = [copies.get(value.name, value.name) for value in body.output]
    wanted = {value.name for value in graph.output}
    for i in reversed(range(len(loop.input) - 2)):
        inside, outside = body.input[2 + i].name, loop.input[2 + i]
        if results[1 + i] != inside or loop.output[i] in wanted:
            continue
        del body.input[2 + i], body.output[1 + i]
        rename_all(body, {inside: outside})
        rename_all(graph, {loop.output[i]: outside})
        del loop.input[2 + i], loop.output[i]


def take_out_nodes(graph, numbers):
    """Computes before each loop what does not change within it.

    It is computed even if the loop, or the branch of a condition in it, is
    never run; so nothing in there may fail then.

    Args:
        graph: `onnx.GraphProto`; it and those within it are changed in place.
        numbers: iterator of ints, for new names.
    """
    nodes = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                take_out_nodes(attribute.g, numbers)
                if node.op_type == "Loop":
                    nodes += _take_invariants(attribute.g, graph, numbers)
        nodes.append(node)
    set_nodes(graph, nodes)


def _take_invariants(body, graph, numbers, inside=frozenset(), constants=None):
    """Takes the nodes out of a body that depend on nothing in it.

    Args:
        body: `onnx.GraphProto`, of a loop in `graph`, or of a condition in it.
        graph: `onnx.GraphProto`; gets copies of the constants they read.
        numbers: iterator of ints, for new names.
        inside: names of what is computed in the loop before.
        constants: dict of name to `onnx.TensorProto`, those of the loop.

    Returns:
        list of `onnx.NodeProto`.
    """
    constants = {
        **(constants or {}),
        **{tensor.name: tensor for tensor in body.initializer},
    }
    inside = {*inside, *(value.name for value in body.input)}
    outputs = {value.name for value in body.output}
    taken, kept = [], []
    for node in body.node:
        inner = [a.g for a in node.attribute if a.HasField("g")]
        for part in inner:
            taken += _take_invariants(part, graph, numbers, inside, constants)
        if (
            inner
            or inside.intersection(node.input)
            or outputs.intersection(node.output)
            or not set(node.input) - set(constants)
            or node.op_type in DRAWS
        ):
            kept.append(node)
            inside.update(node.output)
            continue
        node = NodeProto.FromString(node.SerializeToString())
        for i, name in enumerate(node.input):
            if name in constants:
                # A copy: it may be read inside as well.
                node.input[i] = f"{name}/outside_{next(numbers)}"
                tensor = graph.initializer.add()
                tensor.CopyFrom(constants[name])
                tensor.name = node.input[i]
        taken.append(node)
    set_nodes(body, kept)
    return taken


def pack_weights(graph):
    """Lets each inner graph have the weights of its products as constants.

    When ONNX Runtime loads a graph, it reorders constant weights for its
    products; but not what a loop in a loop reads from outside of both: that it
    would reorder in every step. The weights cannot be stored in the loop: ONNX
    Runtime for the web does not find those of loops in a file. So the loop
    reads each through a Reshape to the shape it has. Runtimes compute that
    once, while loading, and the result is a constant of the loop. It costs
    memory: a copy of these weights.

    Args:
        graph: `onnx.GraphProto`, in which no name stands for two values; those
            within it are changed in place.
    """
    weights = {t.name for t in graph.initializer if len(t.dims) == 2}
    weights -= {value.name for value in graph.input}  # A caller may feed those.
    for node in graph.node:  # What `shrink` has made of weights.
        if node.op_type in ("Cast", "Transpose") and node.input[0] in weights:
            weights.update(node.output)
    # Inner ones first, since the outer ones copy them.
    for number, part in reversed(list(enumerate(graphs_of(graph)))):
        if part is not graph:
            _bring_in(part, weights, f"packed_{number}")


def _bring_in(body, weights, prefix):
    """Takes the weights of products in a body through a Reshape in it."""
    nodes, found, shape = [], set(), f"{prefix}_shape"
    for node in body.node:
        if node.op_type in PRODUCTS and node.input[1] in weights:
            name = node.input[1]
            inside = node.input[1] = f"{prefix}/{name}"
            if name not in found:
                found.add(name)
                nodes.append(
                    helper.make_node("Reshape", [name, shape], [inside], inside)
                )
        nodes.append(node)
    if found:
        # A 0 keeps an axis as it is, unless `keep_empty_axes` comes after.
        zeros = np.zeros(2, np.int64)
        body.initializer.append(numpy_helper.from_array(zeros, shape))
        set_nodes(body, nodes)
