"""What can be learned is learned, and what cannot is not."""

import keras
import numpy as np
import pytest

from tests.support.small_models import shifted
from tests.support.training import compile_model

VOCAB_SIZE = 7
LENGTH = 20
STEPS = 200
BATCH = 8


def loss_after_training(decoder_inputs):
    """Trains on fresh random targets each step; gives the loss on new ones.

    Args:
        decoder_inputs: function of the labels.
    """
    from keras_transformer import Transformer

    generator = np.random.default_rng(0)
    rows = (STEPS + 20) * BATCH
    labels = generator.integers(4, VOCAB_SIZE + 4, (rows, LENGTH))
    inputs = {
        "source_ids": generator.integers(4, VOCAB_SIZE + 4, (rows, 3)),
        "target_ids": decoder_inputs(labels),
    }
    inputs = {name: ids.astype("int32") for name, ids in inputs.items()}
    model = Transformer(
        VOCAB_SIZE + 4,
        num_layers=1,
        d_model=16,
        num_heads=2,
        d_ff=32,
        dropout=0.0,
    )
    compile_model(model, keras.optimizers.Adam(0.01))
    seen = slice(0, STEPS * BATCH)
    model.fit(
        {name: ids[seen] for name, ids in inputs.items()},
        labels[seen],
        batch_size=BATCH,
        shuffle=False,
        verbose=0,
    )
    unseen = slice(STEPS * BATCH, None)
    return model.evaluate(
        {name: ids[unseen] for name, ids in inputs.items()},
        labels[unseen],
        batch_size=BATCH,
        verbose=0,
    )


@pytest.mark.parametrize("leak", [False, True])
def test_random_targets_cannot_be_learned_unless_they_leak(leak):
    # Without the shift a position sees its own label: the same training then
    # succeeds, so that the first case means something.
    loss = loss_after_training((lambda ids: ids) if leak else shifted)
    if leak:
        assert loss < 0.3 * np.log(VOCAB_SIZE)
    else:
        assert 0.9 * np.log(VOCAB_SIZE) < loss < 1.2 * np.log(VOCAB_SIZE)
