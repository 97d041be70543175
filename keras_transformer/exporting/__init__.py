"""Exports: the same tokens without this package."""

from keras_transformer.exporting import onnx_export, saved_model
from keras_transformer.exporting.ctranslate2 import model as ctranslate2_model
from keras_transformer.exporting.ctranslate2.model import export_ctranslate2
from keras_transformer.exporting.frame import Format
from keras_transformer.exporting.litert import export_litert
from keras_transformer.exporting.onnx_export import export_onnx
from keras_transformer.exporting.parity.check import check_parity
from keras_transformer.exporting.parity.process import ParityError
from keras_transformer.exporting.saved_model import export_saved_model

# The one list of formats; a runner for each is in `parity.runners`.
FORMATS = {
    "saved_model": Format(
        export_saved_model, flags=saved_model.FLAGS, by_default=True
    ),
    "onnx": Format(
        export_onnx,
        onnx_export.require_onnx,
        onnx_export.check_onnx,
        onnx_export.FLAGS,
        by_default=True,
    ),
    "litert": Format(export_litert),
    "ctranslate2": Format(
        export_ctranslate2,
        ctranslate2_model.require_ctranslate2,
        ctranslate2_model.check_ctranslate2,
        ctranslate2_model.FLAGS,
    ),
}

__all__ = [
    "FORMATS",
    "ParityError",
    "check_parity",
    "export_ctranslate2",
    "export_litert",
    "export_onnx",
    "export_saved_model",
]
