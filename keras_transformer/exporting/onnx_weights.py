"""One file of weights for several ONNX graphs."""

import hashlib

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
    for field, value in (
        ("location", WEIGHTS),
        ("offset", places[key]),
        ("length", len(data)),
    ):
        tensor.external_data.add(key=field, value=str(value))
