"""Layer norms as the one operator that ONNX has for them.

Keras computes a norm in a dozen steps. Runtimes have it in one, but do not
find it in the way that Keras orders them.
"""

from onnx import helper, numpy_helper

from keras_transformer.exporting.onnx_loops import graphs_of
from keras_transformer.exporting.onnx_nodes import set_nodes


def _norm(gamma, beta):
    """What `keras.layers.LayerNormalization` becomes.

    A pattern is (operator, inputs...); a string names what it stands for, and
    stands for the same wherever it occurs.
    """
    centred = ("Sub", "x", "mean")
    variance = ("ReduceMean", ("Mul", centred, centred), "axes")
    deviation = ("Sqrt", ("Add", variance, "epsilon"))
    scale = ("Mul", ("Reciprocal", deviation), gamma)
    shift = ("Add", ("Mul", ("Neg", "mean"), scale), beta)
    return ("Add", ("Mul", "x", scale), shift)


_MEAN = ("ReduceMean", "x", "axes of mean")
# Outside of loops the converter has computed the reshapes.
_NORMS = (
    _norm(("Reshape", "gamma", "shape"), ("Reshape", "beta", "shape of beta")),
    _norm("gamma", "beta"),
)


def fuse_norms(graph):
    """Replaces the steps of each layer norm by `LayerNormalization`.

    What only they read is left to `remove_unused`.

    Args:
        graph: `onnx.GraphProto`; it and those within it are changed in place.
    """
    constants = {
        tensor.name: tensor
        for part in graphs_of(graph)
        for tensor in part.initializer
    }
    for part in graphs_of(graph):
        makers = {name: node for node in part.node for name in node.output}
        for node in part.node:
            found = _find_norm(node, makers)
            if found is None:
                continue
            for name in (found["gamma"], found["beta"]):
                if name in constants:  # As (1, 1, D), where it was computed.
                    del constants[name].dims[:-1]
            epsilon = numpy_helper.to_array(constants[found["epsilon"]])
            fused = helper.make_node(
                "LayerNormalization",
                [found["x"], found["gamma"], found["beta"]],
                list(node.output),
                name=node.name,
                epsilon=float(epsilon),
            )
            node.CopyFrom(fused)


def _find_norm(node, makers):
    """Gives what the names of `_norm` stand for if a node ends one, or None."""
    for pattern in _NORMS:
        found = {}
        if _matches(node.output[0], pattern, makers, found) and _matches(
            found["mean"], _MEAN, makers, found
        ):
            return found
    return None


def _matches(name, pattern, makers, found):
    """Compares what makes a value with a pattern; fills `found`."""
    if isinstance(pattern, str):
        return found.setdefault(pattern, name) == name
    node = makers.get(name)
    operator, *inputs = pattern
    return (
        node is not None
        and node.op_type == operator
        and len(node.input) == len(inputs)
        and all(
            _matches(each, part, makers, found)
            for each, part in zip(node.input, inputs, strict=True)
        )
    )


def remove_unused(graph):
    """Removes nodes and initializers that nothing reads.

    Args:
        graph: `onnx.GraphProto`; it and those within it are changed in place.
    """
    while True:
        read = {
            name
            for part in graphs_of(graph)
            for node in part.node
            for name in node.input
        }
        read |= {v.name for part in graphs_of(graph) for v in part.output}
        removed = 0
        for part in graphs_of(graph):
            kept = [
                node for node in part.node if read.intersection(node.output)
            ]
            if len(kept) < len(part.node):
                removed += len(part.node) - len(kept)
                set_nodes(part, kept)
        if not removed:
            break
    read |= {value.name for value in graph.input}  # Those are defaults.
    for part in graphs_of(graph):
        for tensor in [*part.initializer]:
            if tensor.name not in read:
                part.initializer.remove(tensor)
