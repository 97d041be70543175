"""Text to text in one ONNX graph, tokenizers included.

SentencePiece is no standard operator: the graph needs those that the package
onnxruntime-extensions registers.
"""

import numpy as np
from onnx import TensorProto, helper

from keras_transformer.decoding.signatures import SIGNATURES
from keras_transformer.exporting.onnx.graph import NodeMaker, set_nodes

DOMAIN = "ai.onnx.contrib"
OUTPUT = "texts"
# As elsewhere, but that no two values of a graph have the same name.
TRANSLATE = SIGNATURES["translate"]._replace(
    outputs=tuple(
        argument._replace(name=OUTPUT) if argument.name == "text" else argument
        for argument in SIGNATURES["translate"].outputs
    )
)


def with_text(model, translator):
    """Puts the tokenizers around the graph of beam search.

    Args:
        model: `onnx.ModelProto` of `beam`.
        translator: `Translator`.

    Returns:
        `onnx.ModelProto` of `TRANSLATE`.
    """
    text = type(model)()
    text.CopyFrom(model)
    text.opset_import.add(domain=DOMAIN, version=1)
    graph = text.graph
    before, after = NodeMaker("tokenize"), NodeMaker("detokenize")
    _tokenize(before, translator)
    _detokenize(after, translator)
    set_nodes(graph, [*before.nodes, *graph.node, *after.nodes])
    options = [value for value in graph.input if value.name != "source_ids"]
    found = {value.name: value for value in graph.output}
    batch, slots = TRANSLATE.outputs[0].shape
    del graph.input[:], graph.output[:]
    graph.input.append(
        helper.make_tensor_value_info("text", TensorProto.STRING, [batch])
    )
    graph.input.extend(options)
    graph.output.append(
        helper.make_tensor_value_info(
            OUTPUT, TensorProto.STRING, [batch, slots]
        )
    )
    graph.output.append(found["scores"])
    return text


def _tokenize(make, translator):
    """From `text` to `source_ids`, the pieces and eos of each row."""
    tokenizer = translator.source_tokenizer
    false = make.constant([False], bool)
    tokens, splits, _ = make(
        "SentencepieceTokenizer",
        "text",
        make.constant([0], np.int64),
        make.constant([0], np.float32),
        false,
        make.constant([True], bool),
        false,
        outputs=3,
        domain=DOMAIN,
        model=tokenizer.model_proto,
    )
    start = make("Slice", splits, _axis(make, 0), _axis(make, -1))
    stop = make("Slice", splits, _axis(make, 1), _axis(make, 2**62))
    lengths = make("Sub", stop, start)
    # There is no largest of no rows.
    one = make.constant([1], np.int64)
    longest = make(
        "ReduceMax", make("Concat", lengths, one, axis=0), keepdims=0
    )
    zero = make.constant(0, np.int64)
    places = make("Range", zero, longest, make.constant(1, np.int64))
    real = make("Less", places, _column(make, lengths))
    places = make(
        "Where", real, make("Add", places, _column(make, start)), zero
    )
    pad = make.constant([tokenizer.pad_id], np.int32)
    ids = make("Gather", make("Concat", tokens, pad, axis=0), places)
    make("Where", real, ids, pad, output="source_ids")


def _detokenize(make, translator):
    """From `token_ids` to text, a row at a time, as the operator wants it."""
    shape = make("Shape", "token_ids", end=2)
    width = make("Shape", "token_ids", start=2)
    # Counted, since a shape of -1 would not do for no rows at all.
    count = make("ReduceProd", shape, keepdims=1)
    rows = make("Concat", count, width, axis=0)
    ids = make("Reshape", "token_ids", rows, allowzero=1)
    eos = make("Cast", "finished", to=TensorProto.INT32)
    ends = make("Cast", make("Sub", "lengths", eos), to=TensorProto.INT64)
    ends = make("Reshape", ends, count, allowzero=1)
    body = _row_to_text(translator, ids, ends)
    found = make("Loop", make("Squeeze", count), "", body=body)
    make("Reshape", found, shape, output=OUTPUT, allowzero=1)


def _row_to_text(translator, ids, ends):
    """The body of a loop over rows."""
    make = NodeMaker("row")
    row = make("Gather", ids, "row/number")
    end = make("Unsqueeze", make("Gather", ends, "row/number"), _axis(make, 0))
    pieces = make("Slice", row, _axis(make, 0), end)
    make(
        "SentencepieceDecoder",
        make("Cast", pieces, to=TensorProto.INT64),
        make.constant([False], bool),
        output="row/text",
        domain=DOMAIN,
        model=translator.target_tokenizer.model_proto,
    )
    make("Identity", "row/on", output="row/still_on")
    return helper.make_graph(
        make.nodes,
        "row_to_text",
        [
            helper.make_tensor_value_info("row/number", TensorProto.INT64, []),
            helper.make_tensor_value_info("row/on", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("row/still_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("row/text", TensorProto.STRING, [1]),
        ],
    )


def _axis(make, value):
    return make.constant([value], np.int64)


def _column(make, vector):
    return make("Unsqueeze", vector, _axis(make, 1))
