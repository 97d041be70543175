"""Files of ONNX graphs: one of weights for all, short names, no defaults."""

import hashlib
import re

from keras_transformer.decoding.signatures import SIGNATURES
from keras_transformer.exporting.onnx.graph import graphs_of

WEIGHTS = "weights.bin"

# Smaller tensors (scalars, shapes, indices) stay in the graph: shape
# inference reads them there.
_SMALLEST = 1024
_ALIGNMENT = 64
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
            # Not those of subgraphs: ONNX Runtime for the web does not find
            # what they have in a file. All weights are in the outermost graph.
            for tensor in model.graph.initializer:
                if len(tensor.raw_data) >= _SMALLEST:
                    _move(tensor, stream, places)
            (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


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
    place = {"location": WEIGHTS, "offset": places[key], "length": len(data)}
    for field, value in place.items():
        tensor.external_data.add(key=field, value=str(value))


def write_explicit(models, folder):
    """Writes graphs whose options have no defaults.

    Args:
        models: dict of name to `onnx.ModelProto`, with weights in a file.
        folder: `pathlib.Path`; gets `<name>.explicit.onnx` for each that has
            options.
    """
    for name, model in models.items():
        defaults = {
            argument.name
            for argument in SIGNATURES[name].inputs
            if argument.default is not None
        }
        if defaults:
            copy = type(model).FromString(model.SerializeToString())
            for tensor in model.graph.initializer:
                if tensor.name in defaults:
                    copy.graph.initializer.remove(tensor)
            path = folder / f"{name}.explicit.onnx"
            path.write_bytes(copy.SerializeToString())
