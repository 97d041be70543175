"""Weights that products in loops read are prepared when a graph is loaded."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

from keras_transformer.exporting.onnx.graph import graphs_of
from keras_transformer.exporting.onnx.loops import PRODUCTS, pack_weights

# A loop in a loop: they read `w`, what it is cast and transposed to, a constant
# of another rank, and one that the caller may feed.
LOOPS = """<ir_version: 8, opset_import: ["" : 18]>
g (float[B,3] x, float[3,3] default) => (float[B,3] y)
<float[3,3] w = {0.1, 0.7, -0.2, 0.3, -0.5, 0.9, 0.4, 0.8, -0.6},
 float[3,3] default = {1., 0., 0., 0., 1., 0., 0., 0., 1.},
 int64 two = {2}, int64 three = {3}, bool yes = {1}, int64[1] first = {0},
 float[1,3,3] page = {1., 0., 0., 0., 1., 0., 0., 0., 1.}> {
    halves = Cast<to = 10>(w)
    near_w = Cast<to = 1>(halves)
    turned_w = Transpose<perm = [1, 0]>(near_w)
    outside = MatMul(x, w)
    y = Loop(two, yes, outside) <body = outer (
        int64 i, bool go, float[B,3] outer_x
    ) => (bool on, float[B,3] outer_y) {
        on = Identity(go)
        middle = MatMul(outer_x, w)
        outer_y = Loop(three, yes, middle) <body = inner (
            int64 j, bool inner_go, float[B,3] inner_x
        ) => (bool inner_on, float[B,3] inner_y) {
            inner_on = Identity(inner_go)
            once = MatMul(inner_x, w)
            twice = MatMul(once, w)
            near = MatMul(twice, turned_w)
            pages = MatMul(near, page)
            one_page = Squeeze(pages, first)
            inner_y = MatMul(one_page, default)
        }>
    }>
}"""
X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")


def session_of(model, settings=None):
    return onnxruntime.InferenceSession(
        model if isinstance(model, str) else model.SerializeToString(),
        settings,
        providers=["CPUExecutionProvider"],
    )


def as_loaded(model, path):
    """The graph that ONNX Runtime makes of one while loading it."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.optimized_model_filepath = str(path)
    session_of(model, settings)
    return onnx.load(path, load_external_data=False)


def own_weights(model):
    """Whether a loop holds the weights of each of the products in it."""
    outermost, *bodies = graphs_of(model.graph)
    constants = {
        tensor.name
        for part in (outermost, *bodies)
        for tensor in part.initializer
        if len(tensor.dims) == 2
    }
    constants.discard("default")
    return [
        node.input[1] in {tensor.name for tensor in body.initializer}
        for body in bodies
        for node in body.node
        if node.op_type in (*PRODUCTS, "Gemm", "FusedGemm")
        and node.input[1] in constants
    ]


def test_answers_stay_and_each_loop_has_its_own_weights(tmp_path):
    model = onnx.parser.parse_model(LOOPS)
    [expected] = session_of(model).run(None, {"x": X})
    default = {"x": X, "default": np.full((3, 3), 0.5, "float32")}
    [other] = session_of(model).run(None, default)
    own = own_weights(as_loaded(model, tmp_path / "before.onnx"))
    assert own == [False] * 4
    pack_weights(model.graph)
    onnx.checker.check_model(model, full_check=True)
    [found] = session_of(model).run(None, {"x": X})
    np.testing.assert_array_equal(found, expected)
    # An input with a default is no constant.
    [found] = session_of(model).run(None, default)
    np.testing.assert_array_equal(found, other)
    own = own_weights(as_loaded(model, tmp_path / "after.onnx"))
    assert own == [True] * 4
    outermost, outer, inner = graphs_of(model.graph)
    # Weights that are read twice are brought in once.
    reshapes = [
        [node.input[0] for node in body.node if node.op_type == "Reshape"]
        for body in (outermost, outer, inner)
    ]
    assert reshapes == [[], ["w"], ["w", "turned_w"]]


@pytest.mark.parametrize("name", ["greedy", "beam", "sample"])
def test_exported_loops_hold_the_weights_of_their_products(
    name, exported, tmp_path
):
    path = exported["onnx"] / f"{name}.onnx"
    own = own_weights(as_loaded(str(path), tmp_path / "loaded.onnx"))
    assert len(own) > 9 and all(own)


def test_weights_stay_in_one_file(exported):
    model = onnx.load(exported["onnx"] / "beam.onnx", load_external_data=False)
    _, *bodies = graphs_of(model.graph)
    sizes = [len(t.raw_data) for body in bodies for t in body.initializer]
    assert max(sizes) < 1024
