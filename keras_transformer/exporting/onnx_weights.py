"""One file of weights for several ONNX graphs."""

import hashlib

import numpy as np

WEIGHTS = "weights.bin"

# Smaller tensors (scalars, shapes, indices) stay in the graph: shape
# inference reads them there.
_SMALLEST = 1024
_ALIGNMENT = 64


def share_weights(models, folder):
    """Writes graphs whose large tensors lie in one file, each only once.

    Args:
        models: dict of name to `onnx.ModelProto`; changed in place.
        folder: `pathlib.Path`; gets `<name>.onnx` for each and
            `weights.bin`.
    """
    places = {}
    with open(folder / WEIGHTS, "wb") as stream:
        for name, model in models.items():
            _transpose_what_is_there(model.graph, places)
            for tensor in _tensors(model.graph):
                if len(tensor.raw_data) >= _SMALLEST:
                    _move(tensor, stream, places)
            (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


def _transpose_what_is_there(graph, places):
    """Reads matrices whose transpose is in the file from there.

    A converter stores a tied embedding, which is also the projection of the
    output, once more in a graph that reads it the other way round only.
    """
    for tensor in graph.initializer:
        if len(tensor.dims) != 2 or len(tensor.raw_data) < _SMALLEST:
            continue
        array = np.frombuffer(tensor.raw_data, np.uint8)
        array = array.reshape(*tensor.dims, -1).swapaxes(0, 1)
        data = array.tobytes()
        if hashlib.sha256(data).digest() not in places:
            continue
        name = tensor.name
        tensor.name = f"{name}_transposed"
        tensor.raw_data = data
        tensor.dims[:] = reversed(tensor.dims)
        node = graph.node.add(op_type="Transpose", name=f"{name}_transpose")
        node.input.append(tensor.name)
        node.output.append(name)
        # Before all that read it.
        nodes = list(graph.node)
        del graph.node[:]
        graph.node.extend([nodes[-1], *nodes[:-1]])


def _tensors(graph):
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)


def _move(tensor, stream, places):
    """Moves the data of a tensor to the file, or finds it there."""
    data = tensor.raw_data
    key = hashlib.sha256(data).digest()
    if key not in places:
        stream.write(bytes(-stream.tell() % _ALIGNMENT))
        places[key] = stream.tell()
        stream.write(data)
    tensor.ClearField("raw_data")
    tensor.data_location = tensor.EXTERNAL
    for field, value in (
        ("location", WEIGHTS),
        ("offset", places[key]),
        ("length", len(data)),
    ):
        tensor.external_data.add(key=field, value=str(value))
