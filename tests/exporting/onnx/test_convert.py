"""The passes over a converted graph are in an order that each of them needs."""

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

from keras_transformer import Transformer
from keras_transformer.decoding import SIGNATURES, Generator
from keras_transformer.exporting.onnx.convert import (
    PASSES,
    convert,
    fill_in,
    follow,
    keep_empty_axes,
    simplify_until_stable,
)
from keras_transformer.exporting.onnx.files import shorten_names
from keras_transformer.exporting.onnx.graph import graphs_of, remove_unused
from keras_transformer.exporting.onnx.loops import (
    pack_weights,
    take_out_variables,
)
from keras_transformer.exporting.onnx.simplify import fuse_norms
from keras_transformer.exporting.onnx.small import shrink, to_int8

HEADER = '<ir_version: 8, opset_import: ["" : 18]>'
X = np.random.default_rng(0).normal(size=(5, 32)).astype("float32")
WEIGHTS = np.random.default_rng(1).normal(size=(32, 32)).astype("float32")


def run(model, **feed):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feed)[0]


def loop():
    """A product with weights in a loop, and a Reshape to an empty axis."""
    model = onnx.parser.parse_model(
        HEADER
        + """g (float[5,32] x) => (float[5,32] y)
        <int64 two = {2}, bool yes = {1}, int64[2] shape = {0, 32},
         int64[1] none = {0}> {
            nothing = Slice(x, none, none)
            empty = Reshape(nothing, shape)
            start = Concat<axis = 0>(x, empty)
            y = Loop(two, yes, start) <body = body (
                int64 i, bool go, float[5,32] x_in
            ) => (bool on, float[5,32] x_out) {
                on = Identity(go)
                x_out = MatMul(x_in, w)
            }>
        }"""
    )
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS, "w"))
    return model


def operators(graph):
    return [node.op_type for part in graphs_of(graph) for node in part.node]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (fill_in, take_out_variables),
        (take_out_variables, simplify_until_stable),
        (fuse_norms, remove_unused),
        (fuse_norms, simplify_until_stable),
        (simplify_until_stable, follow),
        (keep_empty_axes, pack_weights),
        (shorten_names, shrink),
        (shrink, pack_weights),
    ],
)
def test_a_pass_comes_before_those_that_build_on_it(before, after):
    order = [change for change, *_ in PASSES]
    assert len(set(order)) == len(order)
    assert order.index(before) < order.index(after)


def test_weights_packed_before_empty_axes_are_kept_would_be_empty():
    """A Reshape of `pack_weights` has a 0 where an axis stays as it is."""
    right, wrong = loop(), loop()
    keep_empty_axes(right.graph)
    pack_weights(right.graph)
    expected = X @ WEIGHTS @ WEIGHTS
    np.testing.assert_allclose(run(right, x=X), expected, rtol=1e-3)
    pack_weights(wrong.graph)
    keep_empty_axes(wrong.graph)
    with pytest.raises(Exception, match="Incompatible dimensions"):
        run(wrong, x=X)


def test_weights_packed_before_they_shrink_would_stay_large():
    """`to_int8` leaves alone what a Reshape reads."""
    right, wrong = loop(), loop()
    to_int8(right.graph)
    pack_weights(right.graph)
    assert "MatMulInteger" in operators(right.graph)
    pack_weights(wrong.graph)
    to_int8(wrong.graph)
    assert "MatMulInteger" not in operators(wrong.graph)


def test_a_default_given_before_simplifying_would_be_taken_for_a_constant():
    model = onnx.parser.parse_model(
        HEADER
        + """g (float[5,32] x, float scale) => (float[5,32] y)
        <float scale = {2.0}, float two = {2.0}> {
            scaled = Mul(x, scale)
            y = Add(scaled, two)
        }"""
    )
    feed = {"x": X, "scale": np.array(3, "float32")}
    np.testing.assert_allclose(run(model, **feed), X * 3 + 2, rtol=1e-6)
    simplify_until_stable(model.graph)
    np.testing.assert_allclose(run(model, **feed), X * 3 + 3, rtol=1e-6)


def norms_of(order, monkeypatch):
    """How many norms of one step of decoding become one operator."""
    model = Transformer(11, num_layers=1, d_model=8, num_heads=2, d_ff=16)
    monkeypatch.setitem(convert.__globals__, "PASSES", order)
    converted = convert(
        Generator(model).greedy, SIGNATURES["greedy"], model.variables
    )
    return operators(converted.graph).count("LayerNormalization")


def test_norms_simplified_before_they_are_found_would_stay(monkeypatch):
    """Some of their steps are taken out of loops."""
    assert norms_of(PASSES, monkeypatch) == 2 + 3
    late = [each for each in PASSES if each[0] is not fuse_norms]
    place = [change for change, *_ in late].index(simplify_until_stable)
    late.insert(place + 1, (fuse_norms,))
    assert norms_of(late, monkeypatch) < 2 + 3
