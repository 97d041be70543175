"""Weights where a runtime prepares them for its products.

ONNX Runtime orders the constants of a product as its kernels read them, once,
when a graph is loaded; but not those that a loop within a loop reads from
outside of both: these it would order anew in every step. Nor can they simply
lie in the loop: there the runtime for the web does not find what is in a file.
So the loop takes each through an operator that changes nothing. Runtimes
compute it when they load the graph, and the result belongs to the loop.
"""

import numpy as np
from onnx import helper, numpy_helper

from keras_transformer.exporting.onnx_loops import graphs_of
from keras_transformer.exporting.onnx_nodes import set_nodes

PRODUCTS = ("MatMul", "MatMulInteger")
_SAME = "same_shape"


def pack_weights(graph):
    """Makes the weights that products in loops read constants of these loops.

    Args:
        graph: `onnx.GraphProto`; those within it are changed in place.
    """
    weights = {t.name for t in graph.initializer if len(t.dims) == 2}
    weights -= {value.name for value in graph.input}  # Those are defaults.
    for node in graph.node:  # What `onnx_small` has made of weights.
        if node.op_type in ("Cast", "Transpose") and node.input[0] in weights:
            weights.update(node.output)
    # Inner ones first, since the outer ones copy them.
    for number, part in reversed(list(enumerate(graphs_of(graph)))):
        if part is not graph:
            _bring_in(part, weights, f"packed_{number}")


def _bring_in(body, weights, prefix):
    """Takes the weights of products in a body through a Reshape in it."""
    nodes, inside = [], {}
    for node in body.node:
        if node.op_type in PRODUCTS and node.input[1] in weights:
            name = node.input[1]
            if name not in inside:
                inside[name] = f"{prefix}/{name}"
                nodes.append(
                    helper.make_node(
                        "Reshape",
                        [name, f"{prefix}/{_SAME}"],
                        [inside[name]],
                        name=inside[name],
                    )
                )
            node.input[1] = inside[name]
        nodes.append(node)
    if inside:
        # A 0 keeps an axis as it is.
        shape = numpy_helper.from_array(
            np.zeros(2, np.int64), f"{prefix}/{_SAME}"
        )
        body.initializer.append(shape)
        set_nodes(body, nodes)
