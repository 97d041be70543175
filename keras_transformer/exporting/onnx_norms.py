"""Layer norms as the one operator that ONNX has for them.

Keras computes a norm in a dozen steps. Runtimes have it in one, but do not
find it in the way that Keras orders them.
"""

from onnx import helper, numpy_helper

from keras_transformer.exporting.onnx_loops import graphs_of

# What `keras.layers.LayerNormalization` becomes, as (operator, inputs...). A
# string names what it stands for, and stands for the same wherever it occurs.
_CENTRED = ("Sub", "x", "mean")
_VARIANCE = ("ReduceMean", ("Mul", _CENTRED, _CENTRED), "axes")
_DEVIATION = ("Sqrt", ("Add", _VARIANCE, "epsilon"))
_SCALE = ("Mul", ("Reciprocal", _DEVIATION), ("Reshape", "gamma", "shape"))
_SHIFT = ("Add", ("Mul", ("Neg", "mean"), _SCALE), ("Reshape", "beta", "same"))
_NORM = ("Add", ("Mul", "x", _SCALE), _SHIFT)
_MEAN = ("ReduceMean", "x", "axes of mean")


def fuse_norms(graph):
    """Replaces the steps of each layer norm by `LayerNormalization`.

    What only they read is left to `onnx_nodes.remove_unused`.

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
            found = {}
            if not (
                _matches(node.output[0], _NORM, makers, found)
                and _matches(found["mean"], _MEAN, makers, found)
            ):
                continue
            axes, other_axes, epsilon = (
                numpy_helper.to_array(constants[found[name]])
                for name in ("axes", "axes of mean", "epsilon")
            )
            # The one operator always takes the last axis.
            if axes.tolist() != other_axes.tolist() or axes.size != 1:
                continue
            fused = helper.make_node(
                "LayerNormalization",
                [found["x"], found["gamma"], found["beta"]],
                list(node.output),
                name=node.name,
                epsilon=float(epsilon),
            )
            node.CopyFrom(fused)


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
