"""Other runtimes give what the Translator gives."""

import importlib.util

import pytest

from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from keras_transformer.exporting import check_parity
from tests.support import exports

RUNTIMES = {
    # runner: what it reads, its package, and the signatures it runs.
    "litert": ("litert", "ai_edge_litert", TOKEN_SIGNATURES),
}


@pytest.mark.parametrize("runner", RUNTIMES)
def test_runtime_answers_as_the_translator(runner, exported, translator):
    format_name, package, signatures = RUNTIMES[runner]
    if not importlib.util.find_spec(package):
        pytest.skip(f"needs the package {package}")
    # Lines without a piece are for a client to answer.
    texts = [text for text in exports.sentences() if text.strip()]
    report = check_parity(
        translator,
        exported[format_name],
        runner,
        signatures,
        texts,
        batch_sizes=(1, 32),
    )
    assert list(report) == list(signatures)
    for signature, figures in report.items():
        assert figures["equal"] == figures["of"] == len(texts), signature
        assert figures["difference"] < 1e-4


def test_litert_needs_no_operator_but_its_own(exported):
    content = (exported["litert"] / "model.tflite").read_bytes()
    assert b"Flex" not in content
    names = sorted(file.name for file in exported["litert"].iterdir())
    assert names == [
        "metadata.json",
        "model.tflite",
        "source_tokenizer.model",
        "target_tokenizer.model",
    ]
