"""What a graph holds or computes several times, it needs but once."""

import numpy as np
from onnx import TensorProto, numpy_helper

from keras_transformer.exporting.onnx_invariants import DRAWS
from keras_transformer.exporting.onnx_loops import rename_all

SMALL = 1024  # Elements; larger constants are weights, of which none is equal.


def merge(graph):
    """Computes once what is computed several times.

    Args:
        graph: `onnx.GraphProto`, changed in place; those within it are not
            looked at.
    """
    outputs = {value.name for value in graph.output}
    renamed, seen = {}, {}
    for tensor in graph.initializer:
        is_text = tensor.data_type == TensorProto.STRING
        if np.prod(tensor.dims) > SMALL or tensor.name in outputs or is_text:
            continue
        array = numpy_helper.to_array(tensor)
        key = (tensor.data_type, tuple(tensor.dims), array.tobytes())
        first = seen.setdefault(key, tensor.name)
        if first != tensor.name:
            renamed[tensor.name] = first
    for node in graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = renamed.get(name, name)
        if (
            any(attribute.HasField("g") for attribute in node.attribute)
            or node.op_type in DRAWS
            or "" in node.output
        ):
            continue
        attributes = sorted(a.SerializeToString() for a in node.attribute)
        key = (
            node.domain,
            node.op_type,
            len(node.output),
            *node.input,
            *attributes,
        )
        first = seen.setdefault(key, node)
        if first is not node and not outputs.intersection(node.output):
            renamed.update(zip(node.output, first.output, strict=True))
    rename_all(graph, renamed)
