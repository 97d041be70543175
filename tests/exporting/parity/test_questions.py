"""What an export is asked when it is compared with the Translator."""

import numpy as np
import pytest

from keras_transformer.decoding import SIGNATURES, complete_options
from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from keras_transformer.exporting.parity.questions import (
    Question,
    Questioner,
    questions_for,
)
from tests.support import exports


def defaults_of(signature):
    return {
        argument.name: argument.default
        for argument in SIGNATURES[signature].inputs
        if argument.default is not None
    }


@pytest.mark.parametrize("signature", TOKEN_SIGNATURES)
def test_every_option_is_asked_alone_and_with_all_others(signature):
    questions = questions_for([signature], every_option=True)
    assert {each.signature for each in questions} == {signature}
    options = [each.options for each in questions]
    defaults = defaults_of(signature)
    assert options[0] == {}
    if not defaults:
        assert options == [{}]
        return
    alone = options[1:-1]
    assert [list(each) for each in alone] == [[name] for name in defaults]
    assert options[-1] == {k: v for each in alone for k, v in each.items()}
    for name, value in options[-1].items():
        assert value != defaults[name]
    if signature in ("greedy", "beam", "sample"):
        # None is out of range: the ends of ranges have tests of their own.
        given = {k: v for k, v in options[-1].items() if k != "target_prefix"}
        assert (
            complete_options(signature, given).items()
            >= {
                name: value
                for name, value in given.items()
                if name != "forbidden_ids"
            }.items()
        )


def test_in_short_only_the_defaults_and_all_options_are_asked():
    questions = questions_for(["beam", "score"])
    assert [(name, len(options)) for name, options in questions] == [
        ("beam", 0),
        ("beam", len(defaults_of("beam"))),
        ("score", 0),
    ]


def test_texts_are_asked_as_beam_is_but_for_a_prefix():
    (_, nothing), (_, everything) = questions_for(["translate"], True)
    (*_, (_, of_beam)) = questions_for(["beam"], True)
    assert nothing == {}
    assert everything == {**of_beam, "target_prefix": ((),)}


@pytest.fixture(scope="module")
def questioner(translator):
    return Questioner(translator, exports.sentences()[15:28])


@pytest.mark.parametrize("signature", SIGNATURES)
def test_each_sentence_is_asked_once_in_each_batch_size(signature, questioner):
    question = Question(signature, {})
    orders = set()
    for size in (1, 4, 13, 99):
        requests = questioner.requests(question, size)
        assert [len(each.sentences) for each in requests[:-1]] == [size] * (
            len(requests) - 1
        )
        order = [i for each in requests for i in each.sentences]
        assert sorted(order) == list(range(13))
        orders.add(tuple(order))
    # Shuffled, each time otherwise.
    assert len(orders) == 4 and tuple(range(13)) not in orders


@pytest.mark.parametrize("signature", TOKEN_SIGNATURES)
def test_requests_hold_the_rows_of_their_sentences(
    signature, questioner, translator
):
    """With three columns of padding more than they need."""
    texts = exports.sentences()[15:28]
    pieces = translator.tokenize_source(texts)
    [whole] = questioner.requests(Question(signature, {}), 13)
    for request in [whole, *questioner.requests(Question(signature, {}), 5)]:
        names = [
            argument.name
            for argument in SIGNATURES[signature].inputs
            if argument.default is None
        ]
        assert list(request.inputs) == names
        longest = max(len(pieces[i]) for i in request.sentences)
        for row, i in zip(
            request.inputs["source_ids"], request.sentences, strict=True
        ):
            padding = [0] * (longest + 3 - len(pieces[i]))
            assert row == pieces[i] + padding
        for name, rows in request.inputs.items():
            assert len(rows) == len(request.sentences)
            for row, i in zip(rows, request.sentences, strict=True):
                full = whole.inputs[name][whole.sentences.index(i)]
                width = min(len(row), len(full))
                assert row[:width] == full[:width]
                assert not any(row[width:]) and not any(full[width:])


def test_what_is_scored_is_what_greedy_search_finds(questioner, translator):
    """Of a blank text, which has no translation, eos alone."""
    greedy = translator.hypotheses(exports.sentences()[15:28], "greedy")
    [request] = questioner.requests(Question("score", {}), 13)
    for row, i in zip(
        request.inputs["target_ids"], request.sentences, strict=True
    ):
        ids = greedy[i][0].token_ids or [2]
        assert row == ids + [0] * (len(row) - len(ids))


def test_each_sentence_has_a_seed_of_its_own(questioner):
    [request] = questioner.requests(Question("sample", {}), 13)
    assert len({tuple(seed) for seed in request.inputs["seed"]}) == 13


def test_the_translator_is_asked_once_for_a_question(translator, monkeypatch):
    questioner = Questioner(translator, ["one two", ""])
    calls = []
    greedy = translator.generator.greedy

    def count(**inputs):
        calls.append(inputs)
        return greedy(**inputs)

    monkeypatch.setattr(translator.generator, "greedy", count)
    short = Question("greedy", {"max_length": 1})
    for question in (short, Question("greedy", {"max_length": 1})):
        found = questioner.expected(question)
        assert found["lengths"] == [1, 0]
    assert len(calls) == 1
    assert questioner.expected(Question("greedy", {}))["lengths"] != [1, 0]
    assert len(calls) == 2
    for inputs in calls:
        assert inputs["source_ids"].dtype == np.int32


def test_texts_are_those_of_the_translator_with_empty_slots(translator):
    texts = ["one two", ""]
    options = {"num_hypotheses": 2, "target_prefix": ((),)}
    found = Questioner(translator, texts).expected(
        Question("translate", options)
    )
    (one, two), (blank,) = translator.hypotheses(texts, num_hypotheses=2)
    assert found == {
        "text": [[one.text, two.text], ["", ""]],
        "scores": [[one.score, two.score], [blank.score, float("-inf")]],
    }
