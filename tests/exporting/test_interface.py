"""Names, types, axes, defaults and order are the contract, word for word.

`tests/golden/signatures.json` is what clients rely on: an input may be added
to it with a default that keeps the old answer; nothing in it may change.
"""

import json
import pathlib

import numpy as np
import onnx
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from keras_transformer.decoding import SIGNATURES
from keras_transformer.decoding.options import RANGES
from keras_transformer.decoding.signatures import TOKEN_SIGNATURES

GOLDEN = json.loads(
    (pathlib.Path(__file__).parents[1] / "golden/signatures.json").read_text()
)
SIDES = ("inputs", "outputs")


def as_json(signature):
    sides = {
        side: [argument._asdict() for argument in getattr(signature, side)]
        for side in SIDES
    }
    return json.loads(json.dumps(sides))


def default_of(argument):
    return np.array(argument["default"], argument["dtype"])


def assert_default(found, argument):
    """A default has the type, the shape and the value of the contract."""
    expected = default_of(argument)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def signature_defs(folder):
    model = saved_model_pb2.SavedModel()
    model.ParseFromString((folder / "saved_model.pb").read_bytes())
    [meta_graph] = model.meta_graphs
    assert list(meta_graph.meta_info_def.tags) == ["serve"]
    return dict(meta_graph.signature_def)


def test_signatures_are_the_golden_ones():
    found = {name: as_json(value) for name, value in SIGNATURES.items()}
    assert found == GOLDEN


@pytest.mark.parametrize(
    ("name", "signatures", "default"),
    [
        ("saved_model", sorted(SIGNATURES), "translate"),
        ("of_ids", sorted(TOKEN_SIGNATURES), "beam"),
    ],
)
def test_saved_model_has_the_golden_signatures(
    name, signatures, default, exported
):
    definitions = signature_defs(exported[name])
    serving = definitions.pop("serving_default")
    definitions.pop("__saved_model_init_op", None)
    assert sorted(definitions) == signatures
    definitions["serving_default"] = serving
    for signature, definition in definitions.items():
        golden = GOLDEN[
            default if signature == "serving_default" else signature
        ]
        for side in SIDES:
            arguments = getattr(definition, side)
            assert set(arguments) == {a["name"] for a in golden[side]}
            for argument in golden[side]:
                info = arguments[argument["name"]]
                assert tf.dtypes.as_dtype(info.dtype).name == argument["dtype"]
                sizes = [axis.size for axis in info.tensor_shape.dim]
                assert sizes == [-1] * len(argument["shape"])
        defaults = {
            key: tf.make_ndarray(value)
            for key, value in definition.defaults.items()
        }
        expected = {
            a["name"]: a for a in golden["inputs"] if a["default"] is not None
        }
        assert set(defaults) == set(expected)
        for key, argument in expected.items():
            assert_default(defaults[key], argument)


def test_functions_of_a_saved_model_take_their_inputs_in_order(exported):
    loaded = tf.saved_model.load(str(exported["saved_model"]))
    for signature, golden in GOLDEN.items():
        function = getattr(loaded, signature).concrete_functions[0]
        specs, _ = function.structured_input_signature
        names = [argument["name"] for argument in golden["inputs"]]
        assert [spec.name for spec in specs] == names


def axes(value):
    return [axis.dim_param for axis in value.type.tensor_type.shape.dim]


def dtype(value):
    return onnx.helper.tensor_dtype_to_np_dtype(
        value.type.tensor_type.elem_type
    ).name


@pytest.mark.parametrize("signature", TOKEN_SIGNATURES)
def test_onnx_graph_has_the_golden_signature(signature, exported):
    graph = onnx.load(exported["onnx"] / f"{signature}.onnx").graph
    for side, values in zip(SIDES, (graph.input, graph.output), strict=True):
        golden = GOLDEN[signature][side]
        assert [value.name for value in values] == [a["name"] for a in golden]
        for value, argument in zip(values, golden, strict=True):
            assert dtype(value) == argument["dtype"]
            assert axes(value) == argument["shape"]
    initializers = {tensor.name: tensor for tensor in graph.initializer}
    for argument in GOLDEN[signature]["inputs"]:
        if argument["default"] is None:
            assert argument["name"] not in initializers
            continue
        default = onnx.numpy_helper.to_array(initializers[argument["name"]])
        assert_default(default, argument)


@pytest.mark.parametrize(
    ("name", "folder", "signatures"),
    [
        ("saved_model", "assets.extra", list(SIGNATURES)),
        ("of_ids", "assets.extra", list(TOKEN_SIGNATURES)),
        ("onnx", ".", list(SIGNATURES)),
        ("litert", ".", list(TOKEN_SIGNATURES)),
    ],
)
def test_metadata_tells_a_client_all_it_needs(
    name, folder, signatures, exported, translator
):
    folder = exported[name] / folder
    metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
    if name == "onnx":
        # Not called as its input.
        [texts, _] = metadata["signatures"]["translate"]["outputs"]
        assert texts["name"] == "texts"
        texts["name"] = "text"
    assert metadata["signatures"] == {
        signature: GOLDEN[signature] for signature in signatures
    }
    assert metadata["special_ids"] == {"pad": 0, "bos": 1, "eos": 2, "unk": 3}
    # Of the source all that the model has, of the target all that it gives.
    assert metadata["vocab_sizes"] == {"source": 307, "target": 293}
    assert metadata["ranges"] == {
        name: list(ends) for name, ends in RANGES.items()
    }
    for side in ("source", "target"):
        tokenizer = getattr(translator, f"{side}_tokenizer")
        model = (folder / f"{side}_tokenizer.model").read_bytes()
        assert model == tokenizer.model_proto


@pytest.mark.parametrize("name", TOKEN_SIGNATURES)
def test_metadata_explains_every_option(name, exported):
    """Numbers have a range, arrays of ids a rule, and both a default."""
    path = exported["onnx"] / "metadata.json"
    metadata = json.loads(path.read_text("utf-8"))
    for argument in metadata["signatures"][name]["inputs"]:
        if argument["default"] is None:
            continue
        if argument["shape"]:
            assert argument["name"] in metadata["rules"]
            continue
        smallest, largest = metadata["ranges"][argument["name"]]
        assert smallest <= argument["default"] <= largest
