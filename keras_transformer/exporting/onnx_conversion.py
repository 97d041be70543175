"""From a `tf.function` to an ONNX graph with the names of its signature."""

import logging

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.signatures import input_specs
from keras_transformer.exporting.onnx_loops import tidy_loops
from keras_transformer.exporting.onnx_names import shorten_names

OPSET = 18
_INT = 2  # onnx.AttributeProto.INT

# tf2onnx's passes that find something to do in these graphs. Each walks all
# nodes of all bodies; a second round takes as long and leaves as many nodes.
_PASSES = (
    "TransposeOptimizer",
    "ConstFoldOptimizer",
    "MergeDuplicatedNodesOptimizer",
    "ReshapeOptimizer",
    "IdentityOptimizer",
)


def convert(function, signature):
    """Converts a function, loops and all.

    Args:
        function: `tf.function` of `as_function`.
        signature: its `Signature`.

    Returns:
        `onnx.ModelProto` whose inputs, outputs, axes and defaults are those
        of the signature.
    """
    model = _convert(function.get_concrete_function(*input_specs(signature)))
    tidy_loops(model.graph)
    _keep_empty_axes(model.graph)
    _follow(signature, model.graph)
    shorten_names(model.graph)
    return model


def _convert(function):
    from tf2onnx import optimizer, tf_loader, tfonnx

    # Its warnings are about shapes of loop variables, which runtimes infer.
    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    inputs = [t.name for t in function.inputs if t.dtype != tf.resource]
    outputs = [t.name for t in function.outputs]
    # TensorFlow lists the outputs of a dict by name.
    names = sorted(function.structured_outputs)
    with tf.device("/cpu:0"):
        frozen = tf_loader.from_function(function, inputs, outputs)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(frozen, name="")
            converted = tfonnx.process_tf_graph(
                graph,
                opset=OPSET,
                input_names=inputs,
                output_names=outputs,
                tensors_to_rename={
                    **{name: name.removesuffix(":0") for name in inputs},
                    **dict(zip(outputs, names, strict=True)),
                },
                custom_op_handlers={"SelectV2": (_select, [])},
            )
            for name in _PASSES:
                converted = getattr(optimizer, name)().optimize(converted, 0)
            return converted.make_model("keras_transformer")


def _select(context, node, name, args):
    """Converts SelectV2 to Where.

    tf2onnx would write `mask * a + (1 - mask) * b`, which is NaN wherever the
    value that is not selected is infinite.
    """
    del context, name, args
    node.type = "Where"


def _keep_empty_axes(graph):
    """Lets a 0 in the shape of a Reshape mean an empty axis, not a copy."""
    for node in graph.node:
        if node.op_type == "Reshape":
            del node.attribute[:]
            node.attribute.add(name="allowzero", type=_INT, i=1)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _keep_empty_axes(attribute.g)


def _follow(signature, graph):
    """Gives a graph the axes, the order and the defaults of a signature."""
    import onnx

    values = {value.name: value for value in (*graph.input, *graph.output)}
    for argument in (*signature.inputs, *signature.outputs):
        shape = values[argument.name].type.tensor_type.shape
        del shape.dim[:]
        for axis in argument.shape:
            shape.dim.add().dim_param = axis
    outputs = [values[argument.name] for argument in signature.outputs]
    del graph.output[:]
    graph.output.extend(outputs)
    # An initializer with the name of an input is the default of that input.
    graph.initializer.extend(
        onnx.numpy_helper.from_array(
            np.array(argument.default, argument.dtype), argument.name
        )
        for argument in signature.inputs
        if argument.default is not None
    )
