"""Layer norms of ONNX graphs: one operator each."""

import collections

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from keras_transformer.exporting.onnx.graph import graphs_of, remove_unused

# Two layers on each side, with 2 and 3 norms.
NORMS = 2 * 2 + 2 * 3


@pytest.mark.parametrize("name", ["greedy", "beam", "sample", "score"])
def test_every_norm_of_the_model_is_one_operator(exported, name):
    model = onnx.load(exported["onnx"] / f"{name}.onnx")
    found = collections.Counter(
        node.op_type for part in graphs_of(model.graph) for node in part.node
    )
    assert found["LayerNormalization"] == NORMS
    assert found["Reciprocal"] == found["Sqrt"] == 0


def test_norms_have_the_epsilon_of_the_model(exported, translator):
    model = onnx.load(exported["onnx"] / "score.onnx")
    (epsilon,) = {
        attribute.f
        for node in model.graph.node
        if node.op_type == "LayerNormalization"
        for attribute in node.attribute
        if attribute.name == "epsilon"
    }
    layer = translator.transformer.encoder.layers[0]
    assert epsilon == pytest.approx(layer.feed_forward_norm.epsilon)


def test_only_what_nothing_reads_is_removed():
    """Default values of inputs and what only a subgraph reads stay."""
    text = """
        <ir_version: 9, opset_import: ["" : 18]>
        agraph (float[2] x, float y, bool yes) => (float[2] z)
        <float y = {1.0}, float two = {2.0}, float[1] lost = {3.0}> {
            deeper = Neg(x)
            unread = Abs(deeper)
            also_unread = Exp(unread)
            inner = Add(x, two)
            z = If(yes) <
                then_branch = then () => (float[2] a) { a = Neg(inner) },
                else_branch = other () => (float[2] b) {
                    nothing = Abs(inner)
                    b = Mul(inner, y)
                }
            >
        }
    """
    model = onnx.parser.parse_model(text)
    remove_unused(model.graph)
    onnx.checker.check_model(model, full_check=True)
    operators = [
        node.op_type for part in graphs_of(model.graph) for node in part.node
    ]
    assert operators == ["Add", "If", "Neg", "Mul"]
    kept = {
        tensor.name: numpy_helper.to_array(tensor).tolist()
        for tensor in model.graph.initializer
    }
    assert kept == {"y": 1.0, "two": 2.0}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {"x": np.array([3, 5], "float32"), "yes": np.array(False)}
    (found,) = session.run(None, feed)
    assert found.tolist() == [5, 7]
