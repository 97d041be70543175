"""ONNX graphs with smaller weights, loop bodies included.

All runs on standard operators. A graph and those within it read the weights
by name from the outermost one, so it is enough to rewrite the nodes that read
them.
"""

import numpy as np
from onnx import TensorProto, numpy_helper

from keras_transformer.exporting.onnx.graph import (
    NodeMaker,
    graphs_of,
    set_nodes,
)

# Smaller ones (norms, biases) stay as they are.
_SMALLEST = 1024
# Weights have 7 bits: products of 8 by 8 bits overflow on CPUs without VNNI.
_LARGEST_WEIGHT = 63
_LARGEST_ACTIVATION = 127
_ZERO_POINT = 128
_LEAST = 1e-30  # Instead of a scale of 0, for a row of zeros.


def shrink(graph, precision):
    """Stores the weights of a graph as `precision` says, in place."""
    if precision == "float16":
        to_float16(graph)
    elif precision == "int8":
        to_int8(graph)


def to_float16(graph):
    """Stores the matrices of a graph as float16; it computes as before."""
    make = NodeMaker("float16")
    for tensor in _matrices(graph).values():
        half = numpy_helper.to_array(tensor).astype(np.float16)
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(half, f"{name}/float16"))
        make("Cast", tensor.name, output=name, to=TensorProto.FLOAT)
    set_nodes(graph, [*make.nodes, *graph.node])


def to_int8(graph):
    """Stores the matrices of a graph as int8, and multiplies integers.

    A column of a matrix (a row of an embedding) has a scale of its own. The
    input of a product is rounded to 8 bits with a scale for each of its rows,
    so that a sentence does not depend on its neighbours. A matrix that is
    read in another way than by Gather and MatMul stays as it is.
    """
    uses = _Uses(graph, _matrices(graph))
    for name, tensor in uses.matrices.items():
        array = numpy_helper.to_array(tensor)
        integers, scales = quantise(array, axis=1 if name in uses.by_row else 0)
        graph.initializer.remove(tensor)
        for kind, value in (("int8", integers), ("scales", scales)):
            graph.initializer.append(
                numpy_helper.from_array(value, f"{name}/{kind}")
            )
    make = NodeMaker("int8")
    for name in sorted(set(uses.transposed.values())):
        turned = f"{name}/int8_transposed"
        make("Transpose", f"{name}/int8", output=turned, perm=[1, 0])
    # The inner ones first, since the outer ones copy them.
    for number, part in reversed(list(enumerate(graphs_of(graph)))):
        _rewrite(part, uses, NodeMaker(f"int8_{number}"))
    set_nodes(graph, [*make.nodes, *graph.node])


class _Uses:
    """How the matrices of a graph are read, in it and in those within it.

    matrices: name to tensor, of those that can be integers.
    transposed: name of a transpose to that of its matrix.
    by_row: names of those with a scale for each row: what is looked up, or
        multiplied transposed.
    """

    def __init__(self, graph, matrices):
        nodes = [node for part in graphs_of(graph) for node in part.node]
        turned = {
            node.output[0]: node.input[0]
            for node in nodes
            if node.op_type == "Transpose" and node.input[0] in matrices
        }
        by_row, by_column, otherwise = set(turned.values()), set(), set()
        for node in nodes:
            for place, name in enumerate(node.input):
                name = turned.get(name, name)
                if name not in matrices or node.op_type == "Transpose":
                    continue
                if node.op_type == "MatMul" and place == 1:
                    if node.input[1] == name:
                        by_column.add(name)
                elif node.op_type == "Gather" and node.input[0] == name:
                    by_row.add(name)
                else:
                    otherwise.add(name)
        otherwise |= by_row & by_column
        self.matrices = {
            name: tensor
            for name, tensor in matrices.items()
            if name not in otherwise
        }
        self.transposed = {
            output: name
            for output, name in turned.items()
            if name not in otherwise
        }
        self.by_row = by_row - otherwise


def quantise(array, axis):
    """Rounds a matrix to 7 bits, with a scale for each row or column.

    Args:
        array: float32 `(K, N)`.
        axis: 0 for a scale of each column, 1 of each row.

    Returns:
        int8 `(K, N)` and float32 `(N,)` or `(K,)`; their product is near
        `array`.
    """
    scales = np.abs(array).max(axis=axis, keepdims=True) / _LARGEST_WEIGHT
    scales = np.maximum(scales, _LEAST).astype(np.float32)
    return np.round(array / scales).astype(np.int8), scales.ravel()


def _matrices(graph):
    """Finds the matrices of weights: name to `onnx.TensorProto`."""
    return {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == TensorProto.FLOAT
        and len(tensor.dims) == 2
        and len(tensor.raw_data) >= _SMALLEST
    }


def _rewrite(graph, uses, make):
    """Rewrites what reads a matrix in one graph."""
    rounded = {}
    for node in graph.node:
        right = node.input[1] if node.op_type == "MatMul" else None
        if node.op_type == "Transpose" and node.output[0] in uses.transposed:
            continue
        if node.op_type == "Gather" and node.input[0] in uses.matrices:
            _look_up(make, node)
        elif right in uses.transposed or right in uses.matrices:
            name = uses.transposed.get(right, right)
            weights = f"{name}/int8" + "_transposed" * (name != right)
            _multiply(make, node, weights, f"{name}/scales", rounded)
        else:
            make.nodes.append(node)
    set_nodes(graph, make.nodes)


def _look_up(make, node):
    """Rows of integers, times their scales."""
    name, ids = node.input
    rows = make("Gather", f"{name}/int8", ids)
    scales = make("Gather", f"{name}/scales", ids)
    scales = make("Unsqueeze", scales, make.constant([-1], np.int64))
    rows = make("Cast", rows, to=TensorProto.FLOAT)
    make("Mul", rows, scales, output=node.output[0])


def _multiply(make, node, weights, scales, rounded):
    """A product of integers, times the scales of rows and columns."""
    source = node.input[0]
    if source not in rounded:
        rounded[source] = _round(make, source)
    rows, row_scales = rounded[source]
    product = make(
        "MatMulInteger", rows, weights, make.constant(_ZERO_POINT, np.uint8)
    )
    product = make("Cast", product, to=TensorProto.FLOAT)
    product = make("Mul", product, row_scales)
    make("Mul", product, scales, output=node.output[0])


def _round(make, source):
    """Rounds each row to 8 bits: gives integers and scales."""
    largest = make(
        "ReduceMax", make("Abs", source), make.constant([-1], np.int64)
    )
    scales = make(
        "Mul", largest, make.constant(1 / _LARGEST_ACTIVATION, np.float32)
    )
    scales = make("Max", scales, make.constant(_LEAST, np.float32))
    steps = make("Round", make("Div", source, scales))
    steps = make("Add", steps, make.constant(_ZERO_POINT, np.float32))
    return make("Cast", steps, to=TensorProto.UINT8), scales
