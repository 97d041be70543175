"""OpenVINO gives what the Translator gives, from the graphs of ONNX."""

from keras_transformer.exporting import check_parity
from tests.support import exports


def test_openvino_answers_as_the_translator(exported, translator):
    texts = exports.sentences()
    report = check_parity(
        translator,
        exported["onnx"],
        "openvino",
        sentences=texts,
        batch_sizes=(1, 32),
    )
    assert list(report) == ["greedy", "beam", "score", "align"]
    for signature, figures in report.items():
        assert figures["equal"] == figures["of"] == len(texts), signature
        assert figures["difference"] < 1e-4
