"""BLEU of a validation set during fit."""

import keras
import numpy as np
import pytest
import sacrebleu

from keras_transformer import BleuScore
from keras_transformer.training import Replay
from tests.support.training import compile_model, fit, uniform_model

SOURCE = ["eins zwei drei vier", "fünf sechs sieben acht neun"]
TARGET = ["One two three four", "five six seven eight nine"]


def fit_with(*callbacks, epochs=5):
    generator = np.random.default_rng(8)
    batch = tuple(generator.integers(0, 32, (4, 5)) for _ in range(2))
    model = uniform_model()
    compile_model(model)
    return fit(model, [batch], epochs=epochs, callbacks=list(callbacks))


class Translate:
    """Leaves out one word less with each call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, texts):
        assert texts == SOURCE
        self.calls += 1
        return [" ".join(line.split()[: self.calls]) for line in TARGET]


def bleu(count, **options):
    found = [" ".join(line.split()[:count]) for line in TARGET]
    return sacrebleu.corpus_bleu(found, [TARGET], **options).score


def test_each_epoch_has_the_score_of_sacrebleu():
    history = fit_with(BleuScore(Translate(), SOURCE, TARGET))
    expected = [bleu(count) for count in range(1, 6)]
    assert history["val_bleu"] == pytest.approx(expected)
    assert history["val_bleu"][-1] == pytest.approx(100)


def test_in_between_the_score_is_the_latest():
    translate = Translate()
    history = fit_with(
        BleuScore(translate, SOURCE, TARGET, every=2, name="bleu")
    )
    # After the second, the fourth and the last epoch.
    one, two, three = bleu(1), bleu(2), bleu(3)
    assert history["bleu"] == pytest.approx([0, one, one, two, three])
    assert translate.calls == 3


def test_others_may_monitor_it():
    score = BleuScore(
        lambda texts: TARGET[::-1], SOURCE, TARGET, tokenize="none"
    )
    stopping = keras.callbacks.EarlyStopping("val_bleu", mode="max", patience=1)
    history = fit_with(score, stopping)
    assert len(history["val_bleu"]) == 2


def test_options_are_those_of_sacrebleu():
    lower = [line.lower() for line in TARGET]
    scores = [
        fit_with(
            BleuScore(lambda texts: lower, SOURCE, TARGET, lowercase=lowercase),
            epochs=1,
        )["val_bleu"][0]
        for lowercase in (False, True)
    ]
    assert scores[0] == pytest.approx(
        sacrebleu.corpus_bleu(lower, [TARGET]).score
    )
    assert scores[0] < scores[1] == pytest.approx(100)


@pytest.mark.parametrize(
    "source, target, options, message",
    [
        ([], [], {}, "at least 1, got 0 and 0"),
        (["a"], ["b", "c"], {}, "source and target must be .* got 1 and 2"),
        (
            ["a"],
            ["b"],
            {"every": 0},
            "every must be a positive int, got every=0",
        ),
    ],
)
def test_bad_arguments_are_refused(source, target, options, message):
    with pytest.raises(ValueError, match=message):
        BleuScore(Translate(), source, target, **options)


def test_an_epoch_that_is_replayed_is_not_translated_again():
    translate = Translate()
    score = BleuScore(translate, SOURCE, TARGET, every=2)
    replay = Replay([score], [{"val_bleu": 0.0}, {"val_bleu": 17.0}])
    batch = tuple(np.ones((2, 3), int) for _ in range(2))
    model = compile_model(uniform_model())
    history = fit(
        model, [batch], epochs=4, initial_epoch=2, callbacks=[score, replay]
    )
    assert history["val_bleu"] == pytest.approx([17.0, bleu(1)])
    assert translate.calls == 1
