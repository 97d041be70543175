"""The Transformer of "Attention Is All You Need" in Keras 3.

Reading order is import order: layers, transformer, training (Keras alone);
then text (TensorFlow for tensors alone), decoding, translator, exporting
(TensorFlow). These are imported when they are first used, so that the others
work without it.
"""

import importlib

from keras_transformer import layers
from keras_transformer.training import (
    BleuScore,
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
    TokenCrossEntropy,
    WarmupSchedule,
    WeightAveraging,
    average_weights,
)
from keras_transformer.transformer import BASE, BIG, TINY, Transformer
from keras_transformer.version import __version__ as __version__

_LAZY = {
    "BatchPlan": "text",
    "ParallelCorpus": "text",
    "Tokenizer": "text",
    "batches": "text",
    "Constraints": "decoding",
    "Generator": "decoding",
    "Hypotheses": "decoding",
    "SearchState": "decoding",
    "beam_search": "decoding",
    "greedy_search": "decoding",
    "sample": "decoding",
    "Translator": "translator",
    "export_ctranslate2": "exporting",
    "export_litert": "exporting",
    "export_onnx": "exporting",
    "export_saved_model": "exporting",
}

__all__ = [
    "BASE",
    "BIG",
    "BatchPlan",
    "BleuScore",
    "Constraints",
    "Generator",
    "Hypotheses",
    "MaskedCrossEntropy",
    "ParallelCorpus",
    "Perplexity",
    "SearchState",
    "TINY",
    "TokenAccuracy",
    "TokenCrossEntropy",
    "Tokenizer",
    "Transformer",
    "Translator",
    "WarmupSchedule",
    "WeightAveraging",
    "average_weights",
    "batches",
    "beam_search",
    "export_ctranslate2",
    "export_litert",
    "export_onnx",
    "export_saved_model",
    "greedy_search",
    "layers",
    "sample",
]


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_LAZY[name]}")
    return getattr(module, name)


def __dir__():
    return __all__
