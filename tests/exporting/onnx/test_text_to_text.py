"""`translate.onnx` gives the texts of the Translator, in one graph."""

import numpy as np
import onnx
import pytest

from keras_transformer.exporting.onnx.graph import graphs_of
from keras_transformer.exporting.parity.process import ask_process
from keras_transformer.exporting.parity.questions import Question, Request
from keras_transformer.exporting.parity.runners import RUNNERS
from tests.support import exports

TEXTS = [text for text in exports.sentences() if "\0" not in text]


def ask(folder, *questions):
    """Asks texts with options, all in one process of its own.

    Not in this one: SentencePiece is in it already, and two of it do not bear
    each other.
    """
    requests = [
        Request(Question("translate", options), [], {"text": texts})
        for texts, options in questions
    ]
    reply = ask_process(RUNNERS["onnx"].command, folder, requests)
    return [
        (answer["text"]["value"], answer["scores"]["value"])
        for answer in reply["answers"]
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_hypotheses": 4, "length_penalty": 0.0},
        {"beam_size": 3, "max_length": 7, "min_length": 6},
    ],
)
def test_texts_and_scores_are_those_of_the_translator(
    options, exported, translator
):
    [(texts, scores)] = ask(exported["onnx"], (TEXTS, options))
    slots = options.get("num_hypotheses", 1)
    found = translator.hypotheses(TEXTS, batch_size=len(TEXTS), **options)
    empty = [("", -np.inf)] * slots
    expected = [[(best.text, best.score) for best in row] for row in found]
    expected = [(row + empty)[:slots] for row in expected]
    assert texts == [[text for text, _ in row] for row in expected]
    np.testing.assert_allclose(
        scores, [[score for _, score in row] for row in expected], atol=1e-4
    )
    assert np.shape(texts) == np.shape(scores) == (len(TEXTS), slots)


def test_small_and_blank_batches_are_answered(exported, translator):
    batches = [[""], [" ", ""], ["1"], ["</s>"], []]
    answers = ask(exported["onnx"], *((texts, {}) for texts in batches))
    for texts, (found, scores) in zip(batches, answers, strict=True):
        assert found == [[text] for text in translator.translate(texts)]
        assert len(scores) == len(texts)


def test_a_text_does_not_depend_on_its_neighbours(exported):
    alone = [([text], {}) for text in TEXTS]
    (together, _), *answers = ask(exported["onnx"], (TEXTS, {}), *alone)
    assert together == [found for [found], _ in answers]


def test_a_prefix_begins_every_text(exported, translator):
    prefix = {
        "target_prefix": translator.target_tokenizer.tokenize(["ten nine"])
    }
    texts = ["one two three", "four five"]
    [(found, _)] = ask(exported["onnx"], (texts, prefix))
    assert all(text.startswith("ten nine") for [text] in found)


def test_only_the_tokenizers_are_no_standard_operators(exported):
    model = onnx.load(exported["onnx"] / "translate.onnx")
    names = {
        node.op_type
        for graph in graphs_of(model.graph)
        for node in graph.node
        if node.domain not in ("", "ai.onnx")
    }
    assert names == {"SentencepieceTokenizer", "SentencepieceDecoder"}
    domains = {entry.domain: entry.version for entry in model.opset_import}
    assert domains["ai.onnx.contrib"] == 1
