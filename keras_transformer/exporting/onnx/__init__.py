"""The Translator as ONNX graphs that share one file of weights.

All modules here import onnx, which an installation may lack; `export_onnx`
imports them once it knows that it is there.
"""

import onnx

from keras_transformer.decoding.signatures import SIGNATURES, TOKEN_SIGNATURES
from keras_transformer.exporting.onnx.convert import convert
from keras_transformer.exporting.onnx.files import share_weights, write_explicit
from keras_transformer.exporting.onnx.graph import graphs_of
from keras_transformer.exporting.onnx.text import TRANSLATE, with_text


def write_graphs(translator, folder, precision):
    """Writes a graph for each signature, and what they share.

    Args:
        translator: `Translator`, in float32.
        folder: `pathlib.Path`.
        precision: how the weights are stored, as of `export_onnx`.

    Returns:
        Dict of name to `Signature` of what it wrote.

    Raises:
        ValueError: if an operator has no standard ONNX counterpart.
    """
    models = {
        name: convert(
            getattr(translator.generator, name),
            SIGNATURES[name],
            translator.transformer.variables,
            precision,
        )
        for name in TOKEN_SIGNATURES
    }
    for name, model in models.items():
        _refuse_other_operators(name, model)
    share_weights(models, folder)
    write_explicit(models, folder)
    translate = with_text(models["beam"], translator)
    (folder / "translate.onnx").write_bytes(translate.SerializeToString())
    for file in folder.glob("*.onnx"):
        onnx.checker.check_model(str(file), full_check=True)
    return {**SIGNATURES, "translate": TRANSLATE}


def _refuse_other_operators(name, model):
    """Raises ValueError if a graph, or one within it, is not plain ONNX."""
    others = sorted(
        {
            f"{node.domain}::{node.op_type}"
            for part in graphs_of(model.graph)
            for node in part.node
            if node.domain not in ("", "ai.onnx")
        }
    )
    if others:
        raise ValueError(
            f"{name}: operators without a standard ONNX counterpart: "
            f"{', '.join(others)}"
        )
