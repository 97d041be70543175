"""LiteRT gives what the Translator gives."""

from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from keras_transformer.exporting import check_parity
from tests.support import exports


def test_litert_answers_as_the_translator(exported, translator):
    # Lines without a piece are for a client to answer.
    texts = [text for text in exports.sentences() if text.strip()]
    report = check_parity(
        translator,
        exported["litert"],
        "litert",
        TOKEN_SIGNATURES,
        texts,
        batch_sizes=(1, 32),
    )
    assert list(report) == list(TOKEN_SIGNATURES)
    for signature, figures in report.items():
        assert figures["equal"] == figures["of"] == len(texts), signature
        assert figures["difference"] < 1e-4


def test_litert_needs_no_operator_but_its_own(exported):
    content = (exported["litert"] / "model.tflite").read_bytes()
    assert b"Flex" not in content
    names = sorted(file.name for file in exported["litert"].iterdir())
    assert names == [
        "SHA256SUMS",
        "metadata.json",
        "model.tflite",
        "source_tokenizer.model",
        "target_tokenizer.model",
    ]
