"""What all passes over ONNX graphs use."""

import numpy as np
from onnx import NodeProto, helper, numpy_helper

# What gives another answer each time.
DRAWS = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike",
}  # fmt: skip
SMALL = 1024  # Elements; larger constants are weights, of which none is equal.


def graphs_of(graph):
    """Yields a graph and all those within it, outer ones first."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs_of(attribute.g)


def rename_all(graph, renamed):
    """Renames what the nodes of a graph, and those within them, read.

    Args:
        graph: `onnx.GraphProto`; changed in place.
        renamed: dict of str to str, the new names; these may have new ones.
    """

    def name_of(name):
        while name in renamed:
            name = renamed[name]
        return name

    if renamed:
        for part in graphs_of(graph):
            for node in part.node:
                for i, name in enumerate(node.input):
                    node.input[i] = name_of(name)


def set_nodes(graph, nodes):
    """Gives a graph other nodes, some of which may be its own."""
    # Copies, since its own ones end with the list that they are in.
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(nodes)


def remove_unused(graph):
    """Removes nodes and initializers that nothing reads.

    Args:
        graph: `onnx.GraphProto`; it and those within it are changed in place.
    """
    parts = list(graphs_of(graph))
    while True:
        read = {
            name for part in parts for node in part.node for name in node.input
        }
        read |= {value.name for part in parts for value in part.output}
        changed = False
        for part in parts:
            for i in reversed(range(len(part.node))):
                if not read.intersection(part.node[i].output):
                    del part.node[i]
                    changed = True
        if not changed:
            break
        parts = list(graphs_of(graph))  # Some may be gone.
    read |= {value.name for value in graph.input}  # Those are defaults.
    for part in parts:
        for i in reversed(range(len(part.initializer))):
            if part.initializer[i].name not in read:
                del part.initializer[i]


class NodeMaker:
    """Collects nodes; calling it adds one and gives the name of its output.

    Args:
        name: str, the first part of the names that it gives.
    """

    def __init__(self, name):
        self.name = name
        self.nodes = []

    def __call__(self, operator, *inputs, output=None, outputs=1, **attributes):
        prefix = f"{self.name}/{operator}_{len(self.nodes)}"
        names = [f"{prefix}_{i}" for i in range(outputs)]
        if output is not None:
            names = [output]
        self.nodes.append(
            helper.make_node(operator, inputs, names, **attributes)
        )
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype):
        """Adds a constant."""
        array = np.array(value, dtype)
        return self("Constant", value=numpy_helper.from_array(array))
