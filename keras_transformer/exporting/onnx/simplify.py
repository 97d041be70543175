"""What a graph computes in more steps than it needs.

A step of decoding consists of many small operators, and a runtime spends about
as long on starting each as on most of them.
"""

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from keras_transformer.exporting.onnx.graph import (
    DRAWS,
    SMALL,
    graphs_of,
    rename_all,
    set_nodes,
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

_INT64 = TensorProto.INT64
# Operators that move numbers, or calculate with them alike in 32 and 64 bits,
# and how many of their inputs, from the first, are such numbers.
_MOVE = {
    "Add": 2,
    "Concat": None,
    "Gather": 1,
    "GatherND": 1,
    "Max": None,
    "Min": None,
    "Mul": 2,
    "Reshape": 1,
    "Slice": 1,
    "Squeeze": 1,
    "Sub": 2,
    "Unsqueeze": 1,
}
# Those whose output of that number is always int64.
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


def _int32_values(graph):
    """Gives the names of the values that are known to be int32."""
    known = set()
    for part in graphs_of(graph):
        for value in part.input:
            if value.type.tensor_type.elem_type == TensorProto.INT32:
                known.add(value.name)
        for tensor in part.initializer:
            if tensor.data_type == TensorProto.INT32:
                known.add(tensor.name)
        for node in part.node:
            moved = node.input[: _MOVE.get(node.op_type, 0)]
            if (node.op_type in _MOVE and known.issuperset(moved)) or (
                node.op_type == "Cast"
                and node.attribute[0].i == TensorProto.INT32
            ):
                known.add(node.output[0])
    return known


class _Part:
    """One graph, without those within it.

    Args:
        graph: `onnx.GraphProto`.
        int32_values: set of names, of other graphs too.
        sizes: dict, names of constants of all graphs and their shapes.
        numbers: iterator of ints, for new names.
    """

    def __init__(self, graph, int32_values, sizes, numbers):
        self.graph = graph
        self.sizes = sizes
        self.numbers = numbers
        self.int32_values = int32_values
        self.constants = {
            tensor.name: numpy_helper.to_array(tensor)
            for tensor in graph.initializer
            if np.prod(tensor.dims) <= SMALL
        }
        self.makers = {
            name: node for node in graph.node for name in node.output
        }
        self.given = {value.name for value in graph.input}
        self.given |= {tensor.name for tensor in graph.initializer}
        self.renamed = {}
        self.nodes = []
        self.int64_names = {}

    def simplify(self):
        """Replaces what is nothing but something else by that."""
        outputs = {value.name for value in self.graph.output}
        for node in self.graph.node:
            rule = _RULES.get(node.op_type)
            if rule and node.output[0] not in outputs:
                same = rule(self, node)
                if same is not None:
                    self.renamed[node.output[0]] = same
            self.nodes.append(node)
        set_nodes(self.graph, self.nodes)
        rename_all(self.graph, self.renamed)

    def maker(self, name, *operators):
        """Gives the node of a value, if it is one of the operators."""
        node = self.makers.get(name)
        return node if node is not None and node.op_type in operators else None

    def is_constant(self, name, *values):
        """Whether a value is a constant of these elements alone."""
        array = self.constants.get(name)
        return array is not None and np.isin(array, values).all()

    def as_int64(self, name):
        """Gives the name of a value as int64; None if it may be no integer."""
        if name not in self.int64_names:
            self.int64_names[name] = self._make_int64(name)
        return self.int64_names[name]

    def _make_int64(self, name):
        node = self.makers.get(name)
        new = f"{name}/int64_{next(self.numbers)}"
        if name in self.constants:
            if self.constants[name].dtype != np.int32:
                return None
            array = self.constants[name].astype(np.int64)
            self.constants[new] = array
            self.graph.initializer.append(numpy_helper.from_array(array, new))
            return new
        if name in self.int32_values and node is None:
            if name in self.given:
                return None
            # Of an outer graph, where the cast will go too.
            self.nodes.append(
                helper.make_node("Cast", [name], [new], new, to=_INT64)
            )
            return new
        if node is None:
            return None
        if node.op_type == "Cast":
            same = name in self.int32_values and self._is_int64(node.input[0])
            return node.input[0] if same else None
        if node.op_type not in _MOVE:
            return None
        count = _MOVE[node.op_type] or len(node.input)
        moved = [self.as_int64(each) for each in node.input[:count]]
        if None in moved:
            return None
        copy = NodeProto.FromString(node.SerializeToString())
        copy.input[:count] = moved
        copy.output[0] = copy.name = new
        self.nodes.append(copy)
        return new

    def _is_int64(self, name):
        node = self.maker(name, *_GIVE_INT64)
        return (
            node is not None and node.output[_GIVE_INT64[node.op_type]] == name
        )


def _same_integers(part, node):
    """A cast to int64 of what was int64 before."""
    source = node.input[0]
    if node.attribute[0].i == _INT64 and source in part.makers:
        return part.as_int64(source)
    return None


def _same_axes(part, node):
    """An axis that is put where it was taken away."""
    squeezed = part.maker(node.input[0], "Squeeze")
    if squeezed is not None and len(squeezed.input) > 1:
        axes, others = (
            part.constants.get(each.input[1]) for each in (node, squeezed)
        )
        if axes is not None and np.array_equal(axes, others):
            return squeezed.input[0]
    return None


def _whole_slice(part, node):
    """A slice from the first element to the last."""
    starts, ends, *others = node.input[1:]
    ends = part.constants.get(ends)
    if (
        part.is_constant(starts, 0)
        and ends is not None
        and (ends >= np.iinfo(np.int32).max).all()
        and all(part.is_constant(step, 1) for step in others[1:])
    ):
        return node.input[0]
    return None


def _counted_from_the_end(part, node):
    """Ids that may be negative: `Gather` knows what that means."""
    less = part.maker(node.input[0], "Less")
    added = part.maker(node.input[1], "Add")
    ids = node.input[2]
    if less is None or added is None or added.input[0] != ids:
        return None
    compared = part.maker(less.input[0], "Cast")
    if ids not in (less.input[0], compared and compared.input[0]):
        return None
    users = [
        user
        for inner in graphs_of(part.graph)
        for user in inner.node
        if node.output[0] in user.input
    ]
    looks_up_rows = users and all(
        user.op_type == "Gather"
        and all(each.i == 0 for each in user.attribute)  # The axis.
        and part.is_constant(
            added.input[1], part.sizes.get(user.input[0], [0])[0]
        )
        for user in users
    )
    return ids if looks_up_rows and part.is_constant(less.input[1], 0) else None


_RULES = {
    "Cast": _same_integers,
    "Unsqueeze": _same_axes,
    "Slice": _whole_slice,
    "Where": _counted_from_the_end,
}
