"""Weights in loops, where a runtime can prepare them for its products.

When ONNX Runtime loads a graph, it reorders constant weights for its products;
but not what a loop in a loop reads from outside of both: that it would reorder
in every step. The weights cannot be stored in the loop: ONNX Runtime for the
web does not find those of loops in a file. So the loop reads each through a
Reshape to the shape it has. Runtimes compute that once, while loading, and the
result is a constant of the loop. It costs memory: a copy of these weights.
"""

import numpy as np
from onnx import helper, numpy_helper

from keras_transformer.exporting.onnx_loops import graphs_of
from keras_transformer.exporting.onnx_nodes import set_nodes

PRODUCTS = ("MatMul", "MatMulInteger")


def pack_weights(graph):
    """Lets each inner graph have the weights of its products as constants.

    Args:
        graph: `onnx.GraphProto`, in which no name stands for two values; those
            within it are changed in place.
    """
    weights = {t.name for t in graph.initializer if len(t.dims) == 2}
    weights -= {value.name for value in graph.input}  # A caller may feed those.
    for node in graph.node:  # What `onnx_small` has made of weights.
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
        # A 0 keeps an axis as it is.
        zeros = np.zeros(2, np.int64)
        body.initializer.append(numpy_helper.from_array(zeros, shape))
        set_nodes(body, nodes)
