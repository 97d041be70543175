import json
import math

import numpy as np
import pytest

from keras_transformer import Tokenizer, Translator
from keras_transformer.translator import Translation

LINES = ["one two", "", "ten\u2028fünf", 'no such "word" \\']
OBJECT = ["source", "source_tokens", "hypotheses"]
HYPOTHESIS = [
    "text",
    "score",
    "finished",
    "tokens",
    "token_ids",
    "token_log_probs",
    "alignment",
    "attention",
]


def read(found):
    """Reads what the command wrote as a strict reader would."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    *lines, last = found.decode("utf-8").split("\n")
    assert last == ""
    return [json.loads(line, parse_constant=refuse) for line in lines]


@pytest.fixture
def tell(translate):
    """Runs the subcommand on lines; gives the objects it tells."""

    def call(lines, *options):
        code, found = translate("\n".join(lines).encode(), "--json", *options)
        assert code == 0
        return read(found)

    return call


@pytest.mark.parametrize(
    "options, given",
    [
        ({"strategy": "greedy"}, ["--strategy=greedy"]),
        (
            {"num_hypotheses": 3, "length_penalty": 0},
            ["--num-hypotheses=3", "--length-penalty=0"],
        ),
        ({"strategy": "sample", "seed": 5}, ["--strategy=sample", "--seed=5"]),
    ],
)
def test_json_tells_what_the_translator_tells(translator, tell, options, given):
    expected = translator.hypotheses(
        LINES, token_log_probs=True, attention=True, max_length=7, **options
    )
    objects = tell(LINES, "--max-length=7", *given)
    sources = translator.tokenize_source(LINES)
    for line, source, row, told in zip(
        LINES, sources, expected, objects, strict=True
    ):
        assert list(told) == OBJECT
        assert told["source"] == line
        pieces = translator.source_tokenizer.pieces(source)
        assert told["source_tokens"] == pieces
        assert pieces[-1] == "</s>"
        for best, hypothesis in zip(row, told["hypotheses"], strict=True):
            assert list(hypothesis) == HYPOTHESIS
            assert hypothesis["text"] == best.text
            assert hypothesis["finished"] is best.finished
            assert hypothesis["token_ids"] == best.token_ids
            assert hypothesis["tokens"] == (
                translator.target_tokenizer.pieces(best.token_ids)
            )
            assert hypothesis["score"] == pytest.approx(best.score, abs=1e-4)
            log_probs = hypothesis["token_log_probs"]
            assert log_probs == [round(number, 6) for number in log_probs]
            np.testing.assert_allclose(
                log_probs, best.token_log_probs, atol=1e-4
            )
            assert sum(log_probs) == pytest.approx(best.score, abs=1e-3)
            attention = hypothesis["attention"]
            assert len(attention) == len(best.token_ids)
            for numbers, place in zip(
                attention, hypothesis["alignment"], strict=True
            ):
                assert len(numbers) == len(pieces)
                assert numbers == [round(number, 4) for number in numbers]
                assert sum(numbers) == pytest.approx(1, abs=1e-3)
                assert numbers[place] == max(numbers)
            np.testing.assert_allclose(
                np.reshape(attention, best.attention.shape),
                best.attention,
                atol=1e-3,
            )
    width = options.get("num_hypotheses", 1)
    assert [len(told["hypotheses"]) for told in objects] == [width, 1] + (
        [width] * 2
    )


def test_tokens_of_a_finished_translation_end_in_eos(translator, tell):
    ids = [str(i) for i in range(3, 293)]  # Nothing but eos may follow.
    [told] = tell(["ten"], "--target-prefix=ONE", "--forbidden-ids", *ids)
    [hypothesis] = told["hypotheses"]
    assert hypothesis["text"] == "ONE"
    assert hypothesis["finished"] is True
    pieces = translator.target_tokenizer.tokenize("ONE")
    assert hypothesis["token_ids"] == [*pieces, 2]
    assert hypothesis["tokens"][-1] == "</s>"


def test_blank_line_has_a_translation_without_pieces(tell):
    [told] = tell([" "], "--num-hypotheses=3")
    assert told == {
        "source": " ",
        "source_tokens": ["</s>"],
        "hypotheses": [
            {
                "text": "",
                "score": 0.0,
                "finished": False,
                **dict.fromkeys(HYPOTHESIS[3:], []),
            }
        ],
    }


@pytest.mark.parametrize("strategy", ["beam", "greedy", "sample"])
def test_line_for_which_nothing_is_allowed_has_no_translation(tell, strategy):
    ids = [str(i) for i in range(2, 293)]
    options = (f"--strategy={strategy}", "--forbidden-ids", *ids)
    told = tell(["one", "", "two"], *options)
    assert [len(row["hypotheses"]) for row in told] == [0, 1, 0]
    assert [row["source"] for row in told] == ["one", "", "two"]


def test_text_stays_readable_and_on_its_line(translate, monkeypatch):
    text = 'zwölf\n\t\u2028\x85\x0b\r\x1f\x00 "\ufffd'
    monkeypatch.setattr(Tokenizer, "detokenize", lambda self, ids: text)
    options = ("--json", "--strategy=greedy", "--max-length=3")
    _, found = translate("fünf\nsechs\u2028".encode(), *options)
    assert found.count(b"\n") == 2
    for word in ("fünf", "zwölf", "sechs\u2028"):
        assert word in found.decode("utf-8")
    for told in read(found):
        assert [best["text"] for best in told["hypotheses"]] == [text]


def test_numbers_that_json_lacks_are_null(tell, monkeypatch):
    numbers = np.array([-0.1234567, -math.inf, math.nan], "float32")
    best = Translation(
        "x", -1.0000001, [5, 7, 11], False, numbers, numbers[:, None]
    )
    worst = best._replace(score=-math.inf)
    odd = best._replace(score=math.nan)
    monkeypatch.setattr(
        Translator,
        "hypotheses",
        lambda self, texts, **_: [[best, worst, odd]] * len(texts),
    )
    [told] = tell(["one"])
    [hypothesis] = told["hypotheses"]
    assert hypothesis["token_log_probs"] == [-0.123457, None, None]
    assert hypothesis["attention"] == [[-0.1235], [None], [None]]
    assert hypothesis["score"] == -1.0


def test_lines_of_different_chunks_are_told_alike(tell):
    lines = ["one two", "ten", "six six six"] * 6
    options = ("--strategy=greedy", "--max-length=5")
    expected = tell(lines, *options)
    found = tell(lines, *options, "--batch-size=1")
    assert [told["source"] for told in found] == lines
    for told, other in zip(found, expected, strict=True):
        [best], [other_best] = told["hypotheses"], other["hypotheses"]
        assert best["token_ids"] == other_best["token_ids"]
