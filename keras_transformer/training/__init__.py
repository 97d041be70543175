"""What `model.compile` needs (paper, section 5). Keras alone, any backend."""

from keras_transformer.training.loss import (
    MaskedCrossEntropy,
    token_cross_entropy,
)
from keras_transformer.training.metrics import (
    Perplexity,
    TokenAccuracy,
    TokenCrossEntropy,
)
from keras_transformer.training.schedule import WarmupSchedule

__all__ = [
    "MaskedCrossEntropy",
    "Perplexity",
    "TokenAccuracy",
    "TokenCrossEntropy",
    "WarmupSchedule",
    "token_cross_entropy",
]
