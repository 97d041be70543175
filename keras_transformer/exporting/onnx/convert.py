"""From a `tf.function` to an ONNX graph with the names of its signature."""

import itertools
import logging

import keras
import numpy as np
import tensorflow as tf
from onnx import helper, numpy_helper
from tf2onnx import optimizer, tf_loader, tfonnx

from keras_transformer.decoding.signatures import input_specs
from keras_transformer.exporting.onnx import loops, simplify
from keras_transformer.exporting.onnx.files import shorten_names
from keras_transformer.exporting.onnx.graph import (
    graphs_of,
    remove_unused,
    rename_all,
)
from keras_transformer.exporting.onnx.small import shrink

OPSET = 18

# tf2onnx's passes that find something to do in these graphs. Each walks all
# nodes of all bodies; a second round takes as long and leaves as many nodes.
_OF_TF2ONNX = ("ConstFoldOptimizer", "ReshapeOptimizer", "IdentityOptimizer")


def convert(function, signature, variables, precision="float32"):
    """Converts a function, loops and all.

    Args:
        function: `tf.function` of `as_function`.
        signature: its `Signature`.
        variables: list of the Keras variables that it may read. They bypass
            the converter, which would copy each several times.
        precision: how the weights are stored, as of `export_onnx`.

    Returns:
        `onnx.ModelProto` whose inputs, outputs, axes and defaults are those
        of the signature.
    """
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
    given = dict(variables=names, signature=signature, precision=precision)
    for change, *arguments in PASSES:
        change(model.graph, *(given[name] for name in arguments))
    return model


def _convert(function):
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
            for name in _OF_TF2ONNX:
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


def fill_in(graph, variables):
    """Turns inputs into constants with the values of variables, by name."""
    for value in list(graph.input):
        if value.name in variables:
            variable = variables[value.name]
            array = keras.ops.convert_to_numpy(variable)
            graph.initializer.append(
                numpy_helper.from_array(array, variable.path)
            )
            rename_all(graph, {value.name: variable.path})
            graph.input.remove(value)


def _select(context, node, name, args):
    """Converts SelectV2 to Where.

    tf2onnx would write `mask * a + (1 - mask) * b`, which is NaN wherever the
    value that is not selected is infinite.
    """
    del context, name, args
    node.type = "Where"


def keep_empty_axes(graph):
    """Lets a 0 in the shape of a Reshape mean an empty axis, not a copy."""
    for part in graphs_of(graph):
        for node in part.node:
            if node.op_type == "Reshape":
                del node.attribute[:]
                node.attribute.append(helper.make_attribute("allowzero", 1))


def follow(graph, signature):
    """Gives a graph the axes, the order and the defaults of a signature."""
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
        numpy_helper.from_array(
            np.array(argument.default, argument.dtype), argument.name
        )
        for argument in signature.inputs
        if argument.default is not None
    )


def simplify_until_stable(graph):
    """Computes nothing twice, and nothing in a loop that never changes."""
    # What is new gets a number, the same ones in every process.
    numbers = itertools.count()
    sizes = None
    while sizes != (sizes := [len(part.node) for part in graphs_of(graph)]):
        simplify.simplify(graph)
        for part in graphs_of(graph):
            simplify.merge(part)
        remove_unused(graph)
        loops.take_out_nodes(graph, numbers)


# All passes over a converted graph, in order: each changes it in place, and
# gets of what `convert` knows what is named beside it.
PASSES = (
    # First: that weights are constants is what most others look for.
    (fill_in, "variables"),
    # Before all that asks whether a loop changes what it reads.
    (loops.take_out_variables,),
    # Before any other changes the steps that Keras takes for a norm.
    (simplify.fuse_norms,),
    # The steps of norms are still there, unread.
    (remove_unused,),
    (simplify_until_stable,),
    # Before `pack_weights`, whose Reshapes are to copy their axes.
    (keep_empty_axes,),
    # After simplifying, which would take a default for a constant.
    (follow, "signature"),
    # Before weights are named by their precision and place.
    (shorten_names,),
    # Before packing: what a Reshape reads stays as it is.
    (shrink, "precision"),
    # Last, for its Reshapes: see above.
    (loops.pack_weights,),
)
