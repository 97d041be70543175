"""`translate` of a SavedModel gives the texts of `Translator.translate`."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import SIGNATURES
from tests.support import exports
from tests.support.decoding_runs import as_arrays

DEFAULTS = {
    argument.name: argument.default
    for argument in SIGNATURES["translate"].inputs
    if argument.default is not None
}
NBEST = {
    **DEFAULTS,
    "num_hypotheses": 3,
    "length_penalty": 0.0,
    "max_length": 21,
    "min_length": 2,
    "coverage_penalty": 0.2,
    "repetition_penalty": 1.1,
}


@pytest.fixture(scope="module")
def loaded(exported):
    import tensorflow_text  # noqa: F401  Registers its operators.

    return tf.saved_model.load(str(exported["saved_model"]))


def texts_of(outputs):
    texts = outputs["text"].numpy()
    assert texts.dtype == object and texts.ndim == 2
    return [[text.decode("utf-8") for text in row] for row in texts]


def expected_of(translator, texts, slots=1, **options):
    found = translator.hypotheses(
        texts, batch_size=len(texts), num_hypotheses=slots, **options
    )
    empty = ("", -np.inf)
    rows = [[(best.text, best.score) for best in row] for row in found]
    rows = [row + [empty] * (slots - len(row)) for row in rows]
    return (
        [[text for text, _ in row] for row in rows],
        [[score for _, score in row] for row in rows],
    )


def test_texts_are_those_of_the_translator(loaded, translator):
    texts = exports.sentences()
    outputs = loaded.translate(tf.constant(texts))
    assert sum(text == "" for [text] in texts_of(outputs)) == 2
    expected, scores = expected_of(translator, texts)
    assert texts_of(outputs) == expected
    np.testing.assert_allclose(outputs["scores"], scores, atol=1e-4)


def test_best_hypotheses_are_those_of_the_translator(loaded, translator):
    texts = exports.sentences()[18:]
    options = {
        name: tf.constant(value) for name, value in as_arrays(NBEST).items()
    }
    options["text"] = tf.constant(texts)
    outputs = loaded.signatures["translate"](**options)
    apart = ("num_hypotheses", "target_prefix")
    others = {k: v for k, v in NBEST.items() if k not in apart}
    expected, scores = expected_of(translator, texts, slots=3, **others)
    assert ["", "", ""] in expected
    assert texts_of(outputs) == expected
    np.testing.assert_allclose(outputs["scores"], scores, atol=1e-4)
    default = loaded.signatures["serving_default"](**options)
    assert texts_of(default) == expected


def test_a_prefix_begins_every_text(loaded, translator):
    """As ids, one row for each text or one for all."""
    texts = ["one two three", "", "four five"]
    prefix = "ten nine"
    ids = translator.target_tokenizer.tokenize([prefix])
    expected, scores = expected_of(translator, texts, target_prefix=prefix)
    assert expected[0][0].startswith(prefix) and expected[1] == [""]
    for rows in (ids, ids * 3):
        outputs = loaded.translate(
            tf.constant(texts), target_prefix=tf.constant(rows)
        )
        assert texts_of(outputs) == expected
        np.testing.assert_allclose(outputs["scores"], scores, atol=1e-4)


@pytest.mark.parametrize("texts", [[""], [" ", ""], ["1"], ["</s>"], []])
def test_small_and_blank_batches_are_answered(texts, loaded, translator):
    outputs = loaded.translate(tf.constant(texts, tf.string))
    assert texts_of(outputs) == [[t] for t in translator.translate(texts)]
    assert np.isfinite(outputs["scores"]).all()
    assert outputs["scores"].shape == (len(texts), 1)


def test_a_text_does_not_depend_on_its_neighbours(loaded):
    texts = exports.sentences()[24:36]
    together = texts_of(loaded.translate(tf.constant(texts)))
    alone = [texts_of(loaded.translate(tf.constant([t])))[0] for t in texts]
    assert alone == together


def test_a_typed_control_piece_is_plain_text(loaded):
    ends, plain = texts_of(loaded.translate(tf.constant(["</s>", ""])))
    assert ends != plain


def test_bytes_that_are_no_utf8_give_text_all_the_same(loaded):
    outputs = loaded.translate(tf.constant([b"one \xff\xfe two", b"one two"]))
    assert len(texts_of(outputs)) == 2
    alone = loaded.translate(tf.constant([b"one two"]))
    assert texts_of(outputs)[1] == texts_of(alone)[0]
