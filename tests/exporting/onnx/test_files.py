"""What is inside the ONNX files."""

import collections
import json
import pathlib

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tensorflow.core.protobuf import saved_model_pb2

from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from keras_transformer.exporting.onnx import _refuse_other_operators
from keras_transformer.exporting.onnx.convert import OPSET
from keras_transformer.exporting.onnx.files import WEIGHTS
from keras_transformer.exporting.onnx.graph import graphs_of

GOLDEN = json.loads(
    (
        pathlib.Path(__file__).parents[2] / "golden/onnx_operators.json"
    ).read_text()
)
LARGEST_FLOAT16 = 65504
DRAWS = {
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


def tensors_of(graph):
    for part in graphs_of(graph):
        yield from part.initializer
        for node in part.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t


def operators_of(model):
    """Gives the types that each operator of a model puts out."""
    found = collections.defaultdict(set)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    for graph in graphs_of(inferred.graph):
        values = (*graph.value_info, *graph.input, *graph.output)
        types = {v.name: v.type.tensor_type.elem_type for v in values}
        for node in graph.node:
            for output in filter(None, node.output):
                kind = types[output]
                found[node.op_type].add(
                    onnx.TensorProto.DataType.Name(kind).lower()
                )
    return found


@pytest.fixture(params=TOKEN_SIGNATURES)
def path(request, exported):
    return exported["onnx"] / f"{request.param}.onnx"


def test_the_checker_of_onnx_finds_nothing(path):
    onnx.checker.check_model(str(path), full_check=True)


def test_all_operators_are_standard(path, variant_exported):
    for file in (path, variant_exported["onnx"] / path.name):
        model = onnx.load(file)
        assert not model.functions
        domains = {
            node.domain
            for graph in graphs_of(model.graph)
            for node in graph.node
        }
        assert domains == {""}
        opsets = {entry.domain: entry.version for entry in model.opset_import}
        assert opsets[""] == OPSET


def test_operators_and_their_types_are_known(path, variant_exported):
    """A new one may be missing in a runtime: try it, then add it here."""
    for file in (path, variant_exported["onnx"] / path.name):
        found = operators_of(onnx.load(file))
        new = {
            name: sorted(types - set(GOLDEN.get(name, [])))
            for name, types in found.items()
        }
        assert {name: types for name, types in new.items() if types} == {}


def test_known_operators_run_everywhere_and_draw_nothing():
    types = set().union(*GOLDEN.values())
    assert types <= {"bool", "float", "int32", "int64"}
    assert "ArgMax" not in GOLDEN
    assert not DRAWS & set(GOLDEN)


def test_float_constants_are_not_too_large_for_half_precision(
    path, variant_exported
):
    count = 0
    for file in (path, variant_exported["onnx"] / path.name):
        for tensor in tensors_of(onnx.load(file).graph):
            values = numpy_helper.to_array(tensor).ravel()
            if values.dtype.kind != "f":
                continue
            count += 1
            assert values.dtype == np.float32
            sizes = np.abs(values[~np.isinf(values)])
            assert (sizes <= LARGEST_FLOAT16).all(), (
                f"{tensor.name}: {values[:9]}"
            )
    assert count > 50


@pytest.mark.parametrize("name", ["translator", "variant"])
def test_the_folder_holds_every_weight_once(name, request):
    translator = request.getfixturevalue(name)
    fixture = "exported" if name == "translator" else "variant_exported"
    folder = request.getfixturevalue(fixture)["onnx"]
    assert sorted(file.name for file in folder.iterdir()) == [
        "SHA256SUMS",
        "align.onnx",
        "beam.explicit.onnx",
        "beam.onnx",
        "greedy.explicit.onnx",
        "greedy.onnx",
        "metadata.json",
        "sample.explicit.onnx",
        "sample.onnx",
        "score.onnx",
        "source_tokenizer.json",
        "source_tokenizer.model",
        "target_tokenizer.json",
        "target_tokenizer.model",
        "translate.onnx",
        "weights.bin",
    ]
    sizes = [weight.nbytes for weight in translator.transformer.get_weights()]
    # Small ones stay in the graphs; the others start on multiples of 64.
    large = [size for size in sizes if size >= 1024]
    size = (folder / WEIGHTS).stat().st_size
    assert sum(large) <= size <= sum(large) + 64 * len(large)
    assert size > 0.85 * sum(sizes)
    for graph in folder.glob("*.onnx"):
        assert graph.stat().st_size < 2_000_000


def external_data(path):
    places = {}
    model = onnx.load(path, load_external_data=False)
    for tensor in tensors_of(model.graph):
        if tensor.external_data:
            place = {entry.key: entry.value for entry in tensor.external_data}
            assert place.pop("location") == WEIGHTS
            place = (int(place["offset"]), int(place["length"]))
            places[place] = tuple(tensor.dims)
        elif tensor.data_type != onnx.TensorProto.INT32:
            # The ids of a vocabulary are no weights.
            assert len(tensor.raw_data) < 1024
    return places


def test_all_graphs_read_the_same_places(exported):
    read = {
        name: external_data(exported["onnx"] / f"{name}.onnx")
        for name in TOKEN_SIGNATURES
    }
    assert read["greedy"] == read["beam"] == read["sample"] == read["score"]
    # Attention needs neither the projection nor what comes after it.
    assert read["align"].items() < read["greedy"].items()
    ends = 0
    for offset, length in sorted(read["greedy"]):
        assert offset % 64 == 0 and 0 <= offset - ends < 64
        ends = offset + length
    assert ends == (exported["onnx"] / WEIGHTS).stat().st_size
    shapes = list(read["greedy"].values())
    assert (307, 26) in shapes and (26, 307) not in shapes


@pytest.mark.parametrize("name", ["greedy", "beam", "sample"])
def test_explicit_graphs_are_the_same_but_for_defaults(name, exported):
    plain, explicit = (
        onnx.load(exported["onnx"] / file, load_external_data=False)
        for file in (f"{name}.onnx", f"{name}.explicit.onnx")
    )
    options = {value.name for value in plain.graph.input} - {"source_ids"}
    kept = [t for t in plain.graph.initializer if t.name not in options]
    defaults = len(plain.graph.initializer) - len(kept)
    assert defaults == len(options) - (name == "sample")  # Its seed has none.
    assert list(explicit.graph.initializer) == kept
    del plain.graph.initializer[:], explicit.graph.initializer[:]
    assert plain == explicit


def test_no_graph_draws_random_numbers(exported):
    """Sampling computes its own; dropout would draw them."""
    for name in TOKEN_SIGNATURES:
        model = onnx.load(exported["onnx"] / f"{name}.onnx")
        assert not DRAWS.intersection(operators_of(model))
    for name in ("saved_model", "of_ids"):
        model = saved_model_pb2.SavedModel()
        model.ParseFromString((exported[name] / "saved_model.pb").read_bytes())
        graph = model.meta_graphs[0].graph_def
        nodes = [*graph.node]
        for function in graph.library.function:
            nodes.extend(function.node_def)
        operators = {node.op for node in nodes}
        assert {"StatelessWhile", "While"} & operators
        assert not [
            name
            for name in operators
            if "Random" in name or "Dropout" in name or "Multinomial" in name
        ]


def test_an_operator_that_onnx_does_not_have_is_refused():
    inner = onnx.helper.make_graph(
        [onnx.helper.make_node("StatelessMultinomial", [], ["x"], domain="tf")],
        "inner",
        [],
        [],
    )
    loop = onnx.helper.make_node("Loop", [], [], body=inner)
    model = onnx.helper.make_model(onnx.helper.make_graph([loop], "m", [], []))
    message = "sample: operators without .* counterpart: tf::StatelessMulti"
    with pytest.raises(ValueError, match=message):
        _refuse_other_operators("sample", model)
