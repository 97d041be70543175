"""The trained model that tests of decoding share, as they rely on it."""

import pathlib

import numpy as np
import pytest

from keras_transformer import Translator
from spoken_forms import generate
from written_form import PRESETS

FOLDER = pathlib.Path(__file__).parents[1] / "golden/written_form"
SPOKEN, WRITTEN = zip(*generate(1, 100, "test"), strict=True)


@pytest.fixture(scope="module")
def translator():
    return Translator.load(FOLDER)


@pytest.fixture(scope="module")
def greedy(translator):
    rows = translator.hypotheses(SPOKEN, "greedy", batch_size=100)
    return [best for (best,) in rows]


def test_folder_is_under_a_megabyte():
    sizes = [file.stat().st_size for file in FOLDER.rglob("*")]
    assert len(sizes) == 5
    assert sum(sizes) < 1_000_000


def test_model_is_the_one_that_the_recipe_makes(translator):
    config = translator.transformer.get_config()
    made = {
        "train_lines": translator.training["train_lines"],
        "vocab_size": translator.source_tokenizer.vocab_size,
        "d_model": config["d_model"],
        "d_ff": config["d_ff"],
    }
    assert made == PRESETS["small"]
    assert translator.training["examples"] == list(SPOKEN)


def test_outputs_are_long_and_distinct(greedy):
    assert np.mean([len(best.token_ids) for best in greedy]) >= 8
    assert len({tuple(best.token_ids) for best in greedy}) >= 90


def test_model_is_trained_but_not_perfect(greedy):
    right = [
        best.text == written
        for best, written in zip(greedy, WRITTEN, strict=True)
    ]
    assert 0.5 <= np.mean(right) <= 0.95


def test_ways_to_decode_give_different_outputs(translator, greedy):
    texts = [best.text for best in greedy]
    sampled = translator.translate(SPOKEN, "sample", 100, seed=7)
    penalised = translator.translate(
        SPOKEN, "greedy", 100, repetition_penalty=1.3
    )
    beams = translator.hypotheses(SPOKEN, "beam", 100, num_hypotheses=4)
    for other in (sampled, penalised):
        pairs = zip(texts, other, strict=True)
        assert sum(one != two for one, two in pairs) >= 10
    assert all(len({each.text for each in row}) == 4 for row in beams)


@pytest.mark.parametrize(
    "spoken, written",
    [
        ("", ""),
        ("september the thirtieth two thousand seventy nine", "2079-09-30"),
        ("we sold forty eight tickets", "we sold 48 tickets"),
        (
            "in sixteen oh one see pages sixteen to six hundred ninety six",
            "in 1601 see pages 16-696",
        ),
        # Wrong, and sure of it: a third five is missing.
        (
            "dial zero three eight double five five two down to minus five "
            "hundred and thirty",
            "dial 038552 down to -530",
        ),
    ],
)
def test_known_sentences_come_out_as_ever(translator, spoken, written):
    assert translator.translate(spoken, "greedy") == written
