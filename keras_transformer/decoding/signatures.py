"""The signatures of decoding: names, types, shapes and defaults.

Python, SavedModel and ONNX all follow these tables, whose options are those of
`options`. All ids are int32 and all scores float32. An input may be added with
a default that keeps the old answer; none is ever renamed.
"""

import inspect
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.options import options_of


class Argument(NamedTuple):
    """One input or output.

    name: string.
    dtype: string.
    shape: tuple of axis names; () is a scalar.
    default: number, or nested tuple of the rank of `shape`; None where the
        caller must give it.
    """

    name: str
    dtype: str
    shape: tuple
    default: object = None


class Signature(NamedTuple):
    """The inputs and outputs of one function, in order."""

    inputs: tuple
    outputs: tuple


_SOURCE_IDS = Argument("source_ids", "int32", ("batch", "source"))
_TARGET_IDS = Argument("target_ids", "int32", ("batch", "target"))
_TEXT = Argument("text", "string", ("batch",))
_SEED = Argument("seed", "int32", ("batch", "two"))


def _options(strategy):
    return tuple(
        Argument(option.name, option.dtype, option.shape, option.default)
        for option in options_of(strategy)
    )


def _hypotheses(*axes):
    return (
        Argument("token_ids", "int32", (*axes, "length")),
        Argument("lengths", "int32", axes),
        Argument("scores", "float32", axes),
        Argument("finished", "bool", axes),
    )


SIGNATURES = {
    "greedy": Signature(
        (_SOURCE_IDS, *_options("greedy")), _hypotheses("batch")
    ),
    "beam": Signature(
        (_SOURCE_IDS, *_options("beam")), _hypotheses("batch", "hypotheses")
    ),
    "sample": Signature(
        (_SOURCE_IDS, _SEED, *_options("sample")), _hypotheses("batch")
    ),
    "score": Signature(
        (_SOURCE_IDS, _TARGET_IDS),
        (
            Argument("token_log_probs", "float32", ("batch", "target")),
            Argument("scores", "float32", ("batch",)),
        ),
    ),
    "align": Signature(
        (_SOURCE_IDS, _TARGET_IDS),
        (Argument("attention", "float32", ("batch", "target", "source")),),
    ),
    "translate": Signature(
        (_TEXT, *_options("beam")),
        (
            Argument("text", "string", ("batch", "hypotheses")),
            Argument("scores", "float32", ("batch", "hypotheses")),
        ),
    ),
}

# Names of the signatures that take and give token ids.
TOKEN_SIGNATURES = ("greedy", "beam", "sample", "score", "align")


def input_specs(signature):
    """Gives the `tf.TensorSpec`s of a signature's inputs, in order.

    Args:
        signature: `Signature`.

    Returns:
        A list; every axis is free.
    """
    return [
        tf.TensorSpec(
            [None] * len(argument.shape), argument.dtype, argument.name
        )
        for argument in signature.inputs
    ]


def as_function(function, signature):
    """Makes the `tf.function` of a signature: one trace, named inputs.

    Args:
        function: takes the inputs by name, as tensors; returns a dict of the
            outputs.
        signature: `Signature`.

    Returns:
        `tf.function` with the names and defaults of the signature. The
        defaults are tensors, since only those become defaults of a
        SavedModel.
    """
    parameters = inspect.Signature(
        [
            inspect.Parameter(
                argument.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=(
                    inspect.Parameter.empty
                    if argument.default is None
                    else tf.constant(argument.default, argument.dtype)
                ),
            )
            for argument in signature.inputs
        ]
    )

    call = _Call(function, parameters)
    # Nothing here needs autograph: the loops are `tf.while_loop`s already.
    return tf.function(
        call, input_signature=input_specs(signature), autograph=False
    )


class _Call:
    """Calls a function by name, with defaults.

    An object rather than a function, since TensorFlow counts traces by code,
    and would warn that one function is traced again and again.
    """

    def __init__(self, function, parameters):
        self.__signature__ = parameters
        self.__name__ = function.__name__.lstrip("_")
        self._function = function

    def __call__(self, *args, **kwargs):
        # When functions run eagerly TensorFlow passes on what it was given,
        # so names and defaults are resolved here.
        inputs = self.__signature__.bind(*args, **kwargs)
        inputs.apply_defaults()
        return self._function(**inputs.arguments)
