"""Exports: the same tokens without this package."""

from keras_transformer.exporting.ctranslate2_model import export_ctranslate2
from keras_transformer.exporting.litert_model import export_litert
from keras_transformer.exporting.onnx_graphs import export_onnx
from keras_transformer.exporting.parity import ParityError, check_parity
from keras_transformer.exporting.saved_model import export_saved_model

__all__ = [
    "ParityError",
    "check_parity",
    "export_ctranslate2",
    "export_litert",
    "export_onnx",
    "export_saved_model",
]
