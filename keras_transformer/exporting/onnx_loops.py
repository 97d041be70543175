"""Makes the loops of a converted graph as an ONNX runtime likes them.

A TensorFlow loop gets all it reads as loop variables, the weights of the model
among them, and so does the `Loop` it is converted to. There they hide from a
runtime that they are constant, so that it can neither prepare them for its
matrix products nor leave them where they are.
"""


def graphs_of(graph):
    """Yields a graph and all those within it, outer ones first."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs_of(attribute.g)


def tidy_loops(graph):
    """Reads what never changes in a loop from outside of it, in place.

    Args:
        graph: `onnx.GraphProto`; its subgraphs are changed as well.
    """
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                # From within, for what only passes through an inner loop.
                tidy_loops(attribute.g)
                if node.op_type == "Loop":
                    _declare_scalars(attribute.g)
                    _take_out_variables(node, attribute.g, graph)


def _declare_scalars(body):
    """Gives counter and condition their shape, which a runtime asks for."""
    for value in body.input[:2]:
        value.type.tensor_type.ClearField("shape")
        value.type.tensor_type.shape.SetInParent()


def _take_out_variables(loop, body, graph):
    """Takes loop variables out that a body hands on as they are.

    A `Loop` has the inputs trip count, condition, variables and the outputs
    variables; its body has counter, condition, variables and condition,
    variables.
    """
    copies = {
        node.output[0]: node.input[0]
        for node in body.node
        if node.op_type == "Identity"
    }
    results = [copies.get(value.name, value.name) for value in body.output]
    wanted = {value.name for value in graph.output}
    for i in reversed(range(len(loop.input) - 2)):
        inside, outside = body.input[2 + i].name, loop.input[2 + i]
        if results[1 + i] != inside or loop.output[i] in wanted:
            continue
        del body.input[2 + i], body.output[1 + i]
        rename_all(body, {inside: outside})
        rename_all(graph, {loop.output[i]: outside})
        del loop.input[2 + i], loop.output[i]


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
