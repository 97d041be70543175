import subprocess
import sys

import numpy as np
import pytest

from keras_transformer.text import Tokenizer
from keras_transformer.text.bpe_dropout import BpeDropout

LINES = [
    "the lowest of the low went slowly below the willow",
    "newer and wider rivers were never lower than the newest",
] * 5
TEXTS = [*LINES[:2], "a wider owl", "größe 😀 漢字", "</s> <unk> x", ""]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train_from_lines(LINES, 330)


def draws(tokenizer, rate, text, count=400, seed=0):
    dropout = BpeDropout(tokenizer, rate, seed)
    rng = np.random.default_rng(1)
    ids = tokenizer.tokenize(text)
    return [dropout(ids, rng) for _ in range(count)]


@pytest.mark.parametrize("byte_fallback", [True, False])
@pytest.mark.parametrize("text", TEXTS)
def test_without_dropout_pieces_are_those_of_sentencepiece(text, byte_fallback):
    tokenizer = Tokenizer.train_from_lines(
        LINES, 330 if byte_fallback else 75, byte_fallback=byte_fallback
    )
    assert draws(tokenizer, 0.0, text, 3) == [tokenizer.tokenize(text)] * 3


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("text", TEXTS)
def test_the_text_stays_the_same(tokenizer, text, rate):
    expected = tokenizer.detokenize(tokenizer.tokenize(text))
    for ids in draws(tokenizer, rate, text, 40):
        assert tokenizer.detokenize(ids) == expected


def test_with_all_merges_left_out_characters_remain(tokenizer):
    (ids,) = draws(tokenizer, 1.0, "the willow", 1)
    assert tokenizer.pieces(ids) == list("\u2581the\u2581willow")


def test_more_dropout_means_more_pieces(tokenizer):
    lengths = [
        np.mean([len(ids) for ids in draws(tokenizer, rate, LINES[0])])
        for rate in (0.0, 0.1, 0.3, 1.0)
    ]
    assert sorted(set(lengths)) == lengths


def test_one_merge_is_left_out_with_the_rate():
    tokenizer = Tokenizer.train_from_lines(["a a a"] * 9, 263)
    ids = tokenizer.tokenize("a")
    assert tokenizer.pieces(ids) == ["\u2581a"]
    found = [
        BpeDropout(tokenizer, 0.3, seed)(ids, np.random.default_rng(seed))
        for seed in range(1500)
    ]
    share = np.mean([drawn == ids for drawn in found])
    assert share == pytest.approx(0.7, abs=0.04)


def test_draws_differ_and_are_a_function_of_the_seeds(tokenizer):
    first = draws(tokenizer, 0.2, LINES[0])
    assert len({tuple(ids) for ids in first}) > 100
    assert draws(tokenizer, 0.2, LINES[0]) == first
    assert draws(tokenizer, 0.2, LINES[0], seed=2) != first


def test_other_words_before_change_nothing(tokenizer):
    ids = tokenizer.tokenize(LINES[0])
    used = BpeDropout(tokenizer, 0.2)
    for text in TEXTS:
        used(tokenizer.tokenize(text), np.random.default_rng(3))
    fresh = BpeDropout(tokenizer, 0.2)
    one, other = np.random.default_rng(4), np.random.default_rng(4)
    assert used(ids, one) == fresh(ids, other)


def test_another_process_draws_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "model")
    script = f"""
import numpy as np
from keras_transformer.text import Tokenizer
from keras_transformer.text.bpe_dropout import BpeDropout
tokenizer = Tokenizer.load({str(tmp_path / "model")!r})
dropout = BpeDropout(tokenizer, 0.2, 0)
rng = np.random.default_rng(1)
ids = tokenizer.tokenize({LINES[0]!r})
print([dropout(ids, rng) for _ in range(9)])
"""
    output = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert eval(output) == draws(tokenizer, 0.2, LINES[0], 9)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_rate_out_of_range_is_refused(tokenizer, rate):
    with pytest.raises(ValueError, match=f"bpe_dropout: expected .* {rate}$"):
        BpeDropout(tokenizer, rate)


def test_a_model_without_merges_is_refused():
    unigram = Tokenizer.train_from_lines(LINES, 280, model_type="unigram")
    with pytest.raises(ValueError, match="expected a tokenizer .* is bpe"):
        BpeDropout(unigram, 0.1)
