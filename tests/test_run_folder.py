"""What the folder of a trained model holds, and what not."""

import keras
import numpy as np

from keras_transformer import MaskedCrossEntropy
from keras_transformer.run_folder import read_run, write_run
from keras_transformer.text import Tokenizer
from tests.support.small_models import random_batch, small_transformer


def test_a_trained_model_is_saved_without_its_optimizer(tmp_path):
    tokenizer = Tokenizer.train_from_lines(["one two three"] * 9, 270)
    model = small_transformer(source_vocab_size=271)
    facts = {"seed": 7}
    write_run(tmp_path / "fresh", model, tokenizer, tokenizer, facts)
    inputs, labels = random_batch([5, 3], [4, 7])
    model.compile(keras.optimizers.Adam(0.01), MaskedCrossEntropy())
    model.fit(inputs, labels, verbose=0)
    write_run(tmp_path / "trained", model, tokenizer, tokenizer, facts)
    fresh, trained = (
        (tmp_path / name / "model.weights.h5").stat().st_size
        for name in ("fresh", "trained")
    )
    assert fresh == trained
    # It can go on training, and what was saved is what was trained.
    assert model.optimizer is not None
    loaded, source, target, training = read_run(tmp_path / "trained")
    assert source is target and training == facts
    for saved, weight in zip(
        loaded.get_weights(), model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(saved, weight)
