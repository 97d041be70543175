"""Node and Chromium give what the Translator gives, text to text."""

import json

import pytest

from export.parity import RUNTIMES
from export.to_page import make_page
from keras_transformer.decoding import SIGNATURES
from keras_transformer.exporting import check_parity
from tests.support import exports
from tests.support.javascript import (
    CLIENTS,
    ROOT,
    needs_chromium,
    needs_node,
    node,
)

LINES = ["ab cd", "", "ef", "gh ab ef cd gh", "\u2028", "a b"]


@pytest.fixture(scope="module")
def page(exported, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "page"
    make_page(exported["onnx"], folder)
    return folder


def assert_all_equal(report, count):
    assert list(report) == list(SIGNATURES)
    for signature, figures in report.items():
        assert figures["equal"] == figures["of"] == count, signature
        assert figures["difference"] < 1e-4


@needs_node
def test_node_answers_as_the_translator(translator, exported):
    texts = exports.sentences()
    report = check_parity(
        translator,
        exported["onnx"],
        RUNTIMES["node"],
        list(SIGNATURES),
        texts,
        batch_sizes=(1, 32),
    )
    assert_all_equal(report, len(texts))


@needs_node
@needs_chromium
def test_chromium_answers_as_the_translator_without_a_network(translator, page):
    texts = exports.sentences()
    report = check_parity(
        translator,
        page,
        RUNTIMES["browser"],
        list(SIGNATURES),
        texts,
        batch_sizes=(7,),
    )
    assert_all_equal(report, len(texts))


@needs_node
@needs_chromium
def test_a_click_shows_the_beam_and_where_it_looked(translator, page, tmp_path):
    text = "three one two"
    screenshot = tmp_path / "screenshot.png"
    script = ROOT / "tests/support/click_page.mjs"
    seen = json.loads(node(script, page, text, screenshot))
    [expected] = translator.hypotheses([text], num_hypotheses=4)
    first, last = seen["first"], seen["last"]
    assert first["translations"] == [best.text for best in expected]
    scores = [best.score for best in expected]
    assert first["scores"] == pytest.approx(scores, abs=1e-3)
    assert first["status"].startswith("4 translations in ")
    assert first["pressed"] == ["true", "false", "false", "false"]
    assert last["pressed"] == ["false", "false", "false", "true"]
    [source_ids] = translator.tokenize_source([text])
    for view, best in ((first, expected[0]), (last, expected[-1])):
        assert view["columns"] == translator.source_tokenizer.pieces(source_ids)
        assert view["rows"] == translator.target_tokenizer.pieces(
            best.token_ids
        )
        for row in view["weights"]:
            assert sum(row) == pytest.approx(1, abs=0.02)
    assert screenshot.read_bytes().startswith(b"\x89PNG")


@needs_node
def test_the_client_for_node_gives_a_line_for_a_line(exported, translator):
    found = node(
        CLIENTS / "translate.mjs",
        exported["onnx"],
        "3",
        input="\n".join(LINES),
    )
    expected = translator.translate(LINES, beam_size=3)
    assert found.split("\n") == [
        line.replace("\n", " ") for line in expected
    ] + [""]


@needs_node
def test_an_input_that_is_none_is_refused_by_name(exported, tmp_path):
    script = tmp_path / "ask.mjs"
    script.write_text(
        f"import {{ load }} from {str(CLIENTS / 'translate.mjs')!r};\n"
        f"const translator = await load({str(exported['onnx'])!r});\n"
        "try { await translator.translate(['one'], { beam: 3 }); }\n"
        "catch (error) { console.log(error.message); }\n"
    )
    found = node(script)
    assert found.startswith("beam has the inputs source_ids, ")
    assert found.endswith(", not beam\n")


def test_a_page_without_its_files_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is missing; expected what export_on"):
        make_page(tmp_path / "empty", tmp_path / "page")
    assert not (tmp_path / "page").exists()
