"""Small tools for making and changing ONNX graphs."""

import numpy as np
from onnx import NodeProto, helper, numpy_helper


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
