"""Short names in ONNX graphs, most of whose bytes are names otherwise."""

import re

from keras_transformer.exporting.onnx_loops import graphs_of

# What TensorFlow adds where it inlines a function.
_NOISE = re.compile(r"_tfg_inlined_\w+(/\w*_tfg_inlined\w*)*|:0$")


def shorten_names(graph):
    """Shortens the names of a graph, but for its inputs and outputs.

    Args:
        graph: `onnx.GraphProto`; changed in place, as are those within it. A
            node is called as its first output is.
    """
    short = {value.name: value.name for value in (*graph.input, *graph.output)}
    taken = set(short)
    parts = list(graphs_of(graph))
    for name in (name for part in parts for name in _names(part)):
        if name not in short:
            plain = _NOISE.sub("", name) or "value"
            short[name] = _free(plain, taken)
            taken.add(short[name])
    for part in parts:
        for value in (*part.input, *part.output, *part.initializer):
            value.name = short[value.name]
        for node in part.node:
            node.input[:] = [short.get(name, name) for name in node.input]
            node.output[:] = [short.get(name, name) for name in node.output]
            node.name = node.output[0]


def _names(graph):
    """Names of all values that come to be in a graph."""
    for value in (*graph.input, *graph.initializer):
        yield value.name
    for node in graph.node:
        yield from filter(None, node.output)


def _free(name, taken):
    """The name, or the name and a number if it is taken."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found
