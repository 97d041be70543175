"""With every option, 100 real sentences come out alike everywhere.

Of the model in `tests/golden/written_form`: from the Translator, in TensorFlow
and in ONNX Runtime, token for token, in batches of 1, 7 and 32, shuffled and
padded more than they need.
"""

import concurrent.futures
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer import Translator, export_onnx, export_saved_model
from keras_transformer.decoding import SIGNATURES
from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from keras_transformer.exporting import check_parity, frame
from keras_transformer.exporting.parity.answers import difference, one_row
from keras_transformer.exporting.parity.questions import (
    Questioner,
    questions_for,
)

FOLDER = pathlib.Path(__file__).parents[1] / "golden/written_form"
BATCH_SIZES = (1, 7, 32)
EXPORTS = {
    "saved_model": (export_saved_model, tuple(SIGNATURES)),
    "onnx": (export_onnx, TOKEN_SIGNATURES),
}
QUESTIONS = questions_for(["greedy", "beam", "sample"], every_option=True)


@pytest.fixture(scope="module")
def translator():
    return Translator.load(FOLDER)


@pytest.fixture(scope="module")
def sentences(translator):
    return translator.training["examples"]


@pytest.fixture(scope="module")
def questioner(translator, sentences):
    return Questioner(translator, sentences)


@pytest.fixture(scope="module")
def reports(translator, sentences, tmp_path_factory):
    """What `check_parity` says of each export; they answer side by side."""
    folder = tmp_path_factory.mktemp("every_option")
    found = {}
    with (
        pytest.MonkeyPatch.context() as patch,
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):
        # Threads cost so small a model more than they bring.
        patch.setenv("TF_NUM_INTRAOP_THREADS", "1")
        # What an export checks by itself is part of what is checked here.
        patch.setattr(frame, "check_parity", lambda *arguments: {})
        for runner, (export, signatures) in EXPORTS.items():
            export(translator, folder / runner)
            found[runner] = pool.submit(
                check_parity,
                translator,
                folder / runner,
                runner,
                signatures,
                sentences,
                batch_sizes=BATCH_SIZES,
                every_option=True,
            )
        return {runner: future.result() for runner, future in found.items()}


def test_the_sentences_are_long_and_their_outputs_differ(questioner):
    [defaults] = [q for q in QUESTIONS if q.signature == "beam"][:1]
    assert defaults.options == {}
    found = questioner.expected(defaults)
    assert len(found["lengths"]) == 100
    assert np.mean(found["lengths"]) >= 8
    outputs = {
        str(one_row(found, i, pad_id=0)["token_ids"]) for i in range(100)
    }
    assert len(outputs) >= 90


@pytest.mark.parametrize(
    ("runner", "signature"),
    [
        (runner, signature)
        for runner, (_, signatures) in EXPORTS.items()
        for signature in signatures
    ],
)
def test_all_sentences_come_out_alike_with_every_option(
    runner, signature, reports
):
    figures = reports[runner][signature]
    assert (figures["equal"], figures["of"]) == (100, 100)
    assert figures["difference"] < 1e-4


@pytest.mark.parametrize(
    "question",
    [question for question in QUESTIONS if question.options],
    ids=lambda question: f"{question.signature}-{'-'.join(question.options)}",
)
def test_every_option_changes_something(question, questioner):
    """Else an export that ignores it would come out alike."""
    defaults = questioner.expected(question._replace(options={}))
    found = questioner.expected(question)
    changed = [
        i
        for i in range(100)
        if difference(one_row(found, i, 0), one_row(defaults, i, 0)) > 1e-4
    ]
    assert changed


def test_beam_search_is_the_same_in_a_function_of_a_user(
    translator, questioner
):
    """One `tf.function`, traced once, with every option."""
    arguments = SIGNATURES["beam"].inputs
    specs = {
        argument.name: tf.TensorSpec(
            [None] * len(argument.shape), argument.dtype
        )
        for argument in arguments
    }

    @tf.function(input_signature=[specs])
    def best(inputs):
        found = translator.generator.beam(**inputs)
        longest = tf.reduce_max(found["lengths"])
        return found, longest

    for question in (q for q in QUESTIONS if q.signature == "beam"):
        expected = questioner.expected(question)
        everything = len(question.options) == len(arguments) - 1
        for size in BATCH_SIZES if everything else BATCH_SIZES[-1:]:
            for request in questioner.requests(question, size):
                given = {**request.inputs, **question.options}
                inputs = {
                    each.name: tf.constant(
                        given.get(each.name, each.default), each.dtype
                    )
                    for each in arguments
                }
                found, longest = best(inputs)
                found = {k: v.numpy().tolist() for k, v in found.items()}
                assert longest == np.max(found["lengths"])
                for row, i in enumerate(request.sentences):
                    assert (
                        difference(
                            one_row(found, row, 0), one_row(expected, i, 0)
                        )
                        < 1e-4
                    )
    assert best.experimental_get_tracing_count() == 1


@pytest.fixture
def eager():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("signature", ["greedy", "beam", "sample"])
def test_all_sentences_come_out_alike_without_a_graph(
    signature, translator, sentences, questioner, eager
):
    """With the defaults and with everything; each option costs its time."""
    eagerly = Questioner(translator, sentences)
    for question in questions_for([signature]):
        tf.config.run_functions_eagerly(False)
        with_graph = questioner.expected(question)
        tf.config.run_functions_eagerly(True)
        found = eagerly.expected(question)
        for i in range(100):
            assert (
                difference(one_row(found, i, 0), one_row(with_graph, i, 0))
                < 1e-4
            )
