"""What a graph computes in more steps than it needs.

A step of decoding consists of many small operators, and a runtime spends about
as long on starting each as on most of them. Keras computes a norm in a dozen,
where runtimes have it in one, which they do not find in the way that Keras
orders them.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from keras_transformer.exporting.onnx.graph import (
    DRAWS,
    SMALL,
    graphs_of,
    rename_all,
)

# What `keras.layers.LayerNormalization` becomes, as (operator, inputs...). A
# string names what it stands for, and stands for the same wherever it occurs.
_CENTRED = ("Sub", "x", "mean")
_VARIANCE = ("ReduceMean", ("Mul", _CENTRED, _CENTRED), "axes")
_DEVIATION = ("Sqrt", ("Add", _VARIANCE, "epsilon"))
_SCALE = ("Mul", ("Reciprocal", _DEVIATION), ("Reshape", "gamma", "shape"))
_SHIFT = ("Add", ("Mul", ("Neg", "mean"), _SCALE), ("Reshape", "beta", "same"))
_NORM = ("Add", ("Mul", "x", _SCALE), _SHIFT)
_MEAN = ("ReduceMean", "x", "axes of mean")

# Operators whose output of that number is always int64.
_GIVE_INT64 = {"NonZero": 0, "Shape": 0, "Size": 0, "TopK": 1}


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


def simplify(graph):
    """Reads, instead of a value that is nothing but another, that one.

    Args:
        graph: `onnx.GraphProto`, in which no name stands for two values; it
            and those within it are changed in place.
    """
    sizes = {
        tensor.name: tensor.dims
        for part in graphs_of(graph)
        for tensor in part.initializer
    }
    for part in graphs_of(graph):
        known = _Known(part, sizes)
        outputs = {value.name for value in part.output}
        renamed = {}
        for node in part.node:
            rule = _RULES.get(node.op_type)
            if rule and node.output[0] not in outputs:
                same = rule(known, node)
                if same is not None:
                    renamed[node.output[0]] = same
        rename_all(part, renamed)


class _Known:
    """What is known of the values of one graph, without those within it.

    Args:
        graph: `onnx.GraphProto`.
        sizes: dict, names of constants of all graphs and their shapes.
    """

    def __init__(self, graph, sizes):
        self.graph = graph
        self.sizes = sizes
        self.constants = {
            tensor.name: numpy_helper.to_array(tensor)
            for tensor in graph.initializer
            if np.prod(tensor.dims) <= SMALL
        }
        self.makers = {
            name: node for node in graph.node for name in node.output
        }

    def maker(self, name, *operators):
        """Gives the node of a value, if it is one of the operators."""
        node = self.makers.get(name)
        return node if node is not None and node.op_type in operators else None

    def is_constant(self, name, value):
        """Whether a value is a constant of this element alone."""
        array = self.constants.get(name)
        return array is not None and (array == value).all()


def _same_integers(known, node):
    """A cast to int32 and back of what is int64."""
    narrow = known.maker(node.input[0], "Cast")
    if narrow is None:
        return None
    types = (narrow.attribute[0].i, node.attribute[0].i)
    wide = narrow.input[0]
    maker = known.maker(wide, *_GIVE_INT64)
    if types != (TensorProto.INT32, TensorProto.INT64) or maker is None:
        return None
    return wide if maker.output[_GIVE_INT64[maker.op_type]] == wide else None


def _same_axes(known, node):
    """An axis that is put where it was taken away."""
    squeezed = known.maker(node.input[0], "Squeeze")
    if squeezed is not None and len(squeezed.input) > 1:
        axes, others = (
            known.constants.get(each.input[1]) for each in (node, squeezed)
        )
        if axes is not None and np.array_equal(axes, others):
            return squeezed.input[0]
    return None


def _counted_from_the_end(known, node):
    """Ids that may be negative: `Gather` knows what that means."""
    less = known.maker(node.input[0], "Less")
    added = known.maker(node.input[1], "Add")
    ids = node.input[2]
    if less is None or added is None or added.input[0] != ids:
        return None
    compared = known.maker(less.input[0], "Cast")
    if ids not in (less.input[0], compared and compared.input[0]):
        return None
    users = [
        user
        for inner in graphs_of(known.graph)
        for user in inner.node
        if node.output[0] in user.input
    ]
    if not users or not known.is_constant(less.input[1], 0):
        return None
    looks_up_rows = all(
        user.op_type == "Gather"
        and all(each.i == 0 for each in user.attribute)  # The axis.
        and known.is_constant(
            added.input[1], known.sizes.get(user.input[0], [0])[0]
        )
        for user in users
    )
    return ids if looks_up_rows else None


_RULES = {
    "Cast": _same_integers,
    "Unsqueeze": _same_axes,
    "Where": _counted_from_the_end,
}


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
        kind = (node.domain, node.op_type, len(node.output))
        key = (*kind, *node.input, *attributes)
        first = seen.setdefault(key, node)
        if first is not node and not outputs.intersection(node.output):
            renamed.update(zip(node.output, first.output, strict=True))
    rename_all(graph, renamed)
