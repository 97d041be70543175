"""Smaller weights: what they cost, and that nothing else changes."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from keras_transformer.exporting.onnx.files import share_weights
from keras_transformer.exporting.onnx.graph import (
    graphs_of,
    remove_unused,
    rename_all,
)
from keras_transformer.exporting.onnx.loops import pack_weights
from keras_transformer.exporting.onnx.small import quantise, shrink, to_int8
from keras_transformer.exporting.precision import rounded_translator
from tests.support import exports
from tests.support.decoding_runs import seeds

WAYS = ("float16", "int8")


def undo_packing(graph):
    """Gives products in loops the weights themselves, as before packing."""
    rename_all(
        graph,
        {
            node.output[0]: node.input[0]
            for part in graphs_of(graph)
            for node in part.node
            if node.output[0].startswith("packed_")
        },
    )
    remove_unused(graph)


@pytest.fixture(scope="module")
def folders(exported, tmp_path_factory):
    """The exported graphs with smaller weights, without exporting anew."""
    folders = {}
    for name in WAYS:
        folder = folders[name] = tmp_path_factory.mktemp(name)
        models = {
            signature: onnx.load(exported["onnx"] / f"{signature}.onnx")
            for signature in TOKEN_SIGNATURES
        }
        for model in models.values():
            undo_packing(model.graph)
            shrink(model.graph, name)
            pack_weights(model.graph)
        share_weights(models, folder)
        for signature in models:
            path = str(folder / f"{signature}.onnx")
            onnx.checker.check_model(path, full_check=True)
    return folders


@pytest.mark.parametrize("axis", [0, 1])
def test_a_matrix_is_rounded_to_seven_bits_with_its_own_scales(axis):
    generator = np.random.default_rng(1)
    matrix = generator.normal(size=(7, 11)).astype("float32")
    matrix *= np.exp(generator.normal(size=(7, 11)[1 - axis]) * 3).reshape(
        (1, -1) if axis == 0 else (-1, 1)
    )
    integers, scales = quantise(matrix, axis)
    assert integers.dtype == np.int8 and scales.dtype == np.float32
    assert scales.shape == (matrix.shape[1 - axis],)
    assert (np.abs(integers).max(axis) == 63).all()
    wide = scales[None, :] if axis == 0 else scales[:, None]
    assert (np.abs(integers * wide - matrix) <= wide * 0.5001).all()


def test_a_column_of_zeros_stays_one():
    integers, scales = quantise(np.zeros((3, 2), "float32"), 0)
    assert not integers.any() and np.isfinite(scales).all()


@pytest.mark.parametrize(("name", "share"), [("float16", 0.5), ("int8", 0.25)])
def test_matrices_take_their_share_of_the_room(name, share, folders, exported):
    large = (exported["onnx"] / "weights.bin").stat().st_size
    small = (folders[name] / "weights.bin").stat().st_size
    # Less where matrices have become so small that they stay in the graphs.
    assert 0.5 * share * large < small < 1.1 * share * large


@pytest.mark.parametrize("name", WAYS)
def test_no_large_matrix_stays_float32_in_any_body(name, folders):
    for signature in TOKEN_SIGNATURES:
        model = onnx.load(folders[name] / f"{signature}.onnx")
        for graph in graphs_of(model.graph):
            for tensor in graph.initializer:
                array = numpy_helper.to_array(tensor)
                small = array.ndim < 2 or array.nbytes < 1024
                assert small or array.dtype != np.float32
        products = [
            node.op_type
            for graph in graphs_of(model.graph)
            for node in graph.node
            if node.op_type in ("MatMulInteger", "Cast")
        ]
        assert ("MatMulInteger" in products) == (name == "int8")


@pytest.mark.parametrize("name", WAYS)
def test_loops_take_small_weights_in_too(name, folders):
    model = onnx.load(folders[name] / "beam.onnx")
    weights = {t.name for t in model.graph.initializer}
    for node in model.graph.node:
        weights.update(node.output if weights.issuperset(node.input) else ())
    _, *bodies = graphs_of(model.graph)
    products = [
        node
        for body in bodies
        for node in body.node
        if node.op_type.startswith("MatMul") and node.input[1] in weights
    ]
    assert not products


def test_half_precision_equals_a_translator_with_such_weights(
    folders, translator, source_ids, asked
):
    ask = exports.onnx_runtime(folders["float16"])
    rounded = rounded_translator(translator)
    for signature in ("greedy", "beam", "sample"):
        found = ask(signature, source_ids, asked[signature])
        expected = exports.generate(
            rounded, signature, source_ids, asked[signature]
        )
        exports.assert_same_rows(
            exports.rows_of(found), exports.rows_of(expected)
        )
    for signature in ("score", "align"):
        exports.assert_same_floats(
            ask(signature, source_ids, asked[signature]),
            exports.generate(rounded, signature, source_ids, asked[signature]),
        )


def test_integers_give_nearly_the_same_probabilities(
    folders, translator, source_ids, asked
):
    ask = exports.onnx_runtime(folders["int8"])
    found = ask("score", source_ids, asked["score"])["token_log_probs"]
    expected = exports.generate(
        translator, "score", source_ids, asked["score"]
    )["token_log_probs"]
    real = asked["score"]["target_ids"] != 0
    assert np.isfinite(found).all()
    apart = np.abs(found - expected)[real]
    assert 1e-5 < apart.mean() < 0.1


@pytest.mark.parametrize("name", WAYS)
def test_a_sentence_does_not_depend_on_its_batch(name, folders, source_ids):
    ask = exports.onnx_runtime(folders[name])
    inputs = {"seed": seeds(len(source_ids))}
    for signature, given in (("beam", {}), ("sample", inputs)):
        together = exports.rows_of(ask(signature, source_ids, given))
        for i in (0, 5, 22, 30, 36):
            one = slice(i, i + 1)
            wider = exports.widen(source_ids[one], 3)
            alone = ask(signature, wider, exports.take(given, one))
            exports.assert_same_rows(
                exports.rows_of(alone), together[i : i + 1]
            )


@pytest.mark.parametrize(
    "body",
    [
        "a = MatMul(x, w)  b = Gather(w, i)  y = Add(a, b)",
        "a = Gemm(x, w)  b = Gather(w, i)  y = Add(a, b)",
        "a = MatMul(w, x)  y = Identity(a)",
        "t = Transpose<perm = [1, 0]>(w)  y = Add(x, t)",
    ],
)
def test_a_matrix_that_is_read_otherwise_stays_as_it_is(body):
    """Scales for its rows and its columns, or none that would be right."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        "m (float[32, 32] x, int64[32] i) => (float[32, 32] y) {" + body + "}"
    )
    matrix = np.random.default_rng(1).normal(size=(32, 32)).astype("float32")
    model.graph.initializer.append(numpy_helper.from_array(matrix, "w"))
    before = model.SerializeToString()
    to_int8(model.graph)
    assert model.SerializeToString() == before


def test_a_transpose_outside_of_the_loop_that_reads_it_is_followed():
    inner = onnx.parser.parse_graph(
        "body (int64 n, bool on, float[2, 32] x) => (bool on2, float[2, 32] y)"
        "{ on2 = Identity(on)  y = MatMul(x, t) }"
    )
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        "m (float[2, 32] x) => (float[2, 32] y)"
        "{ t = Transpose<perm = [1, 0]>(w) }"
    )
    count = numpy_helper.from_array(np.array(1, "int64"), "count")
    matrix = np.random.default_rng(1).normal(size=(32, 32)).astype("float32")
    model.graph.initializer.extend(
        [numpy_helper.from_array(matrix, "w"), count]
    )
    loop = onnx.helper.make_node("Loop", ["count", "", "x"], ["y"], body=inner)
    model.graph.node.append(loop)
    x = np.random.default_rng(2).normal(size=(2, 32)).astype("float32")
    to_int8(model.graph)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    [found] = session.run(None, {"x": x})
    np.testing.assert_allclose(found, x @ matrix.T, atol=0.5)
    assert np.abs(found - x @ matrix.T).max() > 1e-4
