"""From a `tf.function` to an ONNX graph with the names of its signature."""

import logging

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.decoding.signatures import input_specs
from keras_transformer.exporting.onnx_loops import rename_all, tidy_loops
from keras_transformer.exporting.onnx_names import shorten_names

OPSET = 18
_INT = 2  # onnx.AttributeProto.INT

# tf2onnx's passes that find something to do in these graphs. Each walks all
# nodes of all bodies; a second round takes as long and leaves as many nodes.
_PASSES = (
    "ConstFoldOptimizer",
    "ReshapeOptimizer",
    "IdentityOptimizer",
)


def convert(function, signature, variables):
    """Converts a function, loops and all.

    Args:
        function: `tf.function` of `as_function`.
        signature: its `Signature`.
        variables: list of the Keras variables that it may read. They bypass
            the converter, which would copy each several times.

    Returns:
        `onnx.ModelProto` whose inputs, outputs, axes and defaults are those
        of the signature.
    """
    # They import onnx, which an installation may lack.
    from keras_transformer.exporting.onnx_nodes import remove_unused
    from keras_transformer.exporting.onnx_norms import fuse_norms
    from keras_transformer.exporting.onnx_tidy import tidy

    specs = input_specs(signature)
    names = {f"variable_{i}": variable for i, variable in enumerate(variables)}
    weights = [
        tf.TensorSpec(variable.shape, variable.dtype, name)
        for name, variable in names.items()
    ]

    @tf.function(autograph=False)
    def with_weights(*values):
        inputs, values = values[: len(specs)], values[len(specs) :]
        with keras.StatelessScope(zip(variables, values, strict=True)):
            return function.python_function(*inputs)

    model = _convert(with_weights.get_concrete_function(*specs, *weights))
    _fill_in(model.graph, names)
    tidy_loops(model.graph)
    fuse_norms(model.graph)
    remove_unused(model.graph)
    tidy(model.graph)
    _keep_empty_axes(model.graph)
    _follow(signature, model.graph)
    shorten_names(model.graph)
    return model


def _convert(function):
    from tf2onnx import optimizer, tf_loader, tfonnx

    # Its warnings are about shapes of loop variables, which runtimes infer.
    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    inputs = [t.name for t in function.inputs]
    outputs = [t.name for t in function.outputs]
    # TensorFlow lists the outputs of a dict by name.
    names = sorted(function.structured_outputs)
    with tf.device("/cpu:0"):
        definition = _without_lowering(function)
        with tf.Graph().as_default():
            tf.import_graph_def(definition, name="")
            optimized = tf_loader.tf_optimize(inputs, outputs, definition)
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(optimized, name="")
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


def _without_lowering(function):
    """The graph of a function, with loops that optimisers leave as they are.

    tf2onnx's own loader does so while it makes variables constants, of which
    there are none here.
    """
    definition = function.graph.as_graph_def(add_shapes=True)
    parts = [
        definition.node,
        *(f.node_def for f in definition.library.function),
    ]
    for node in (node for part in parts for node in part):
        node.attr.pop("_lower_using_switch_merge", None)
    return definition


def _fill_in(graph, variables):
    """Turns inputs into constants with the values of variables, by name."""
    import onnx

    inputs = [value for value in graph.input if value.name not in variables]
    for value in graph.input:
        if value.name in variables:
            variable = variables[value.name]
            array = keras.ops.convert_to_numpy(variable)
            graph.initializer.append(
                onnx.numpy_helper.from_array(array, variable.path)
            )
            rename_all(graph, {value.name: variable.path})
    del graph.input[:]
    graph.input.extend(inputs)


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
