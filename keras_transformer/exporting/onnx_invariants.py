"""What stays the same in a loop is computed once, before it."""

from onnx import NodeProto

from keras_transformer.exporting.onnx_nodes import set_nodes

# What gives another answer each time.
DRAWS = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


def take_out_nodes(graph, numbers):
    """Computes before each loop what does not change within it.

    It is computed even if the loop, or the branch of a condition in it, is
    never run; so nothing in there may fail then.

    Args:
        graph: `onnx.GraphProto`; it and those within it are changed in place.
        numbers: iterator of ints, for new names.
    """
    nodes = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                take_out_nodes(attribute.g, numbers)
                if node.op_type == "Loop":
                    nodes += _take_invariants(attribute.g, graph, numbers)
        nodes.append(node)
    set_nodes(graph, nodes)


def _take_invariants(body, graph, numbers, inside=frozenset(), constants=None):
    """Takes the nodes out of a body that depend on nothing in it.

    Args:
        body: `onnx.GraphProto`, of a loop in `graph`, or of a condition in it.
        graph: `onnx.GraphProto`; gets copies of the constants they read.
        numbers: iterator of ints, for new names.
        inside: names of what is computed in the loop before.
        constants: dict of name to `onnx.TensorProto`, those of the loop.

    Returns:
        list of `onnx.NodeProto`.
    """
    constants = {
        **(constants or {}),
        **{tensor.name: tensor for tensor in body.initializer},
    }
    inside = {*inside, *(value.name for value in body.input)}
    outputs = {value.name for value in body.output}
    taken, kept = [], []
    for node in body.node:
        inner = [a.g for a in node.attribute if a.HasField("g")]
        for part in inner:
            taken += _take_invariants(part, graph, numbers, inside, constants)
        if (
            inner
            or inside.intersection(node.input)
            or outputs.intersection(node.output)
            or not set(node.input) - set(constants)
            or node.op_type in DRAWS
        ):
            kept.append(node)
            inside.update(node.output)
            continue
        node = NodeProto.FromString(node.SerializeToString())
        for i, name in enumerate(node.input):
            if name in constants:
                # A copy: it may be read inside as well.
                node.input[i] = f"{name}/outside_{next(numbers)}"
                tensor = graph.initializer.add()
                tensor.CopyFrom(constants[name])
                tensor.name = node.input[i]
        taken.append(node)
    set_nodes(body, kept)
    return taken
