"""What `compile` and `fit` need (paper, section 5); Keras alone."""

from keras_transformer.training.averaging import (
    WeightAveraging,
    average_weights,
)
from keras_transformer.training.callbacks import BleuScore
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
    "BleuScore",
    "MaskedCrossEntropy",
    "Perplexity",
    "TokenAccuracy",
    "TokenCrossEntropy",
    "WarmupSchedule",
    "WeightAveraging",
    "average_weights",
    "token_cross_entropy",
]
