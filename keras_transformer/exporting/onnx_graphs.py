"""The Translator as ONNX graphs that share one file of weights."""

from keras_transformer.decoding.signatures import (
    SIGNATURES,
    TOKEN_SIGNATURES,
)
from keras_transformer.exporting.float32 import float32_translator
from keras_transformer.exporting.metadata import write_metadata
from keras_transformer.exporting.onnx_conversion import convert
from keras_transformer.exporting.onnx_weights import share_weights
from keras_transformer.exporting.parity import check_parity, require_parity
from keras_transformer.folders import new_folder, refuse_existing


def export_onnx(translator, folder, sentences=None):
    """Writes ONNX graphs that decode by themselves, loop and all.

    The folder holds `greedy.onnx`, `beam.onnx`, `sample.onnx`, `score.onnx`
    and `align.onnx`, which follow `keras_transformer.decoding.SIGNATURES`, the
    one `weights.bin` that they share, the tokenizers' SentencePiece models and
    `metadata.json`. Options are inputs with defaults: a client names only what
    it changes, numbers as 0-d arrays. All operators are standard ONNX.

    Args:
        translator: `Translator`.
        folder: where to; it is written beside, checked and renamed.
        sentences: list of str to check the export with; by default those
            kept with the run.

    Returns:
        The report of `check_parity`, all equal.

    Raises:
        ImportError: if the extra `export` is not installed.
        ValueError: if `folder` exists, or an operator has no standard ONNX
            counterpart.
        ParityError: if the export does not answer as `translator` does; then
            nothing is left behind.
    """
    refuse_existing(folder)
    onnx = import_onnx()
    translator = float32_translator(translator)
    models = {
        name: convert(getattr(translator.generator, name), SIGNATURES[name])
        for name in TOKEN_SIGNATURES
    }
    for name, model in models.items():
        _refuse_other_operators(name, model)
    with new_folder(folder) as beside:
        share_weights(models, beside)
        for name in models:
            onnx.checker.check_model(
                str(beside / f"{name}.onnx"), full_check=True
            )
        write_metadata(translator, beside, TOKEN_SIGNATURES)
        report = check_parity(
            translator, beside, "onnx", TOKEN_SIGNATURES, sentences
        )
        require_parity(report, "onnx")
    return report


def import_onnx():
    """Imports `onnx`; ImportError names the extra that is missing."""
    try:
        import onnx
        import onnxruntime  # noqa: F401  The parity check runs it.
        import tf2onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "exporting to ONNX needs the extra 'export': "
            "pip install 'keras-transformer-seq2seq[export]'"
        ) from error
    return onnx


def _refuse_other_operators(name, model):
    """Raises ValueError if a graph, or one within it, is not plain ONNX."""
    others = sorted(
        {
            f"{node.domain}::{node.op_type}"
            for node in _nodes(model.graph)
            if node.domain not in ("", "ai.onnx")
        }
    )
    if others:
        raise ValueError(
            f"{name}: operators without a standard ONNX counterpart: "
            f"{', '.join(others)}"
        )


def _nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
