"""What `compile` and `fit` need (paper, section 5); Keras alone."""

from keras_transformer.training.averaging import (
    WeightAveraging,
    average_weights,
)
from keras_transformer.training.callbacks import (
    StopWhenDiverged,
    TokensPerSecond,
)
from keras_transformer.training.checkpoints import (
    Checkpoints,
    Replay,
    latest_checkpoint,
)
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
from keras_transformer.training.validation import BleuScore

__all__ = [
    "BleuScore",
    "Checkpoints",
    "MaskedCrossEntropy",
    "Perplexity",
    "Replay",
    "StopWhenDiverged",
    "TokenAccuracy",
    "TokenCrossEntropy",
    "TokensPerSecond",
    "WarmupSchedule",
    "WeightAveraging",
    "average_weights",
    "latest_checkpoint",
    "token_cross_entropy",
]
