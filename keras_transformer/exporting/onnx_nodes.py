"""Small tools for making and changing ONNX graphs."""

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from keras_transformer.exporting.onnx_loops import graphs_of


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
