"""OpenVINO gives what the Translator gives, from the graphs of ONNX."""

from export.parity import RUNTIMES
from keras_transformer.exporting import check_parity
from tests.support import exports


def test_openvino_answers_as_the_translator(exported, translator):
    texts = exports.sentences()
    signatures = RUNTIMES["openvino"]["signatures"]
    report = check_parity(
        translator,
        exported["onnx"],
        "openvino",
        signatures,
        texts,
        batch_sizes=(1, 32),
    )
    assert list(report) == list(signatures)
    for signature, figures in report.items():
        assert figures["equal"] == figures["of"] == len(texts), signature
        assert figures["difference"] < 1e-4
