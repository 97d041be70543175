"""An export that does not answer as the Translator does is refused."""

import copy
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest

from export.parity import RUNTIMES
from keras_transformer import Translator, export_onnx, export_saved_model
from keras_transformer.decoding import SIGNATURES
from keras_transformer.decoding.signatures import TOKEN_SIGNATURES
from keras_transformer.exporting import (
    ParityError,
    check_parity,
    frame,
    saved_model,
)
from keras_transformer.exporting import onnx as graphs
from keras_transformer.exporting.onnx.small import shrink
from keras_transformer.exporting.parity import check
from keras_transformer.exporting.parity.questions import Question, Questioner
from keras_transformer.exporting.parity.runners import RUNNERS
from tests.support import exports

UNEQUAL = {
    "greedy": {"equal": 5, "of": 5, "difference": 1e-6},
    "beam": {"equal": 3, "of": 5, "difference": 0.25},
}


GREEDY_OPTIONS = [
    argument.name
    for argument in SIGNATURES["greedy"].inputs
    if argument.default is not None
]


def interface_of(signature):
    return {
        side: {
            argument.name: [argument.dtype, list(argument.shape)]
            for argument in getattr(SIGNATURES[signature], side)
        }
        for side in ("inputs", "outputs")
    }


def test_every_sentence_is_counted(translator, exported):
    texts = exports.sentences()[:9]
    report = check_parity(
        translator,
        exported["onnx"],
        "onnx",
        TOKEN_SIGNATURES,
        texts,
        batch_sizes=(4,),
    )
    assert list(report) == list(TOKEN_SIGNATURES)
    for figures in report.values():
        assert figures["equal"] == figures["of"] == 9
        assert 0 <= figures["difference"] < 1e-4
    check.require_parity(report, "onnx")


@pytest.mark.parametrize("name", ["saved_model", "of_ids"])
def test_ids_alone_may_be_asked_of_an_export_with_and_without_text(
    translator, exported, name
):
    texts = exports.sentences()[:3]
    report = check_parity(
        translator, exported[name], "saved_model", ("score",), texts
    )
    check.require_parity(report, name)
    assert report["score"]["equal"] == 3


def test_other_weights_are_noticed(translator, exported):
    model = exports.with_options(translator.transformer)
    weights = model.get_weights()
    model.set_weights([w + np.float32(1e-3) for w in weights])
    other = Translator(model, translator.source_tokenizer)
    texts = [*exports.sentences()[:6], ""]
    report = check_parity(
        other,
        exported["onnx"],
        "onnx",
        ("greedy", "beam", "score", "align"),
        texts,
        batch_sizes=(7,),
    )
    for figures in report.values():
        assert figures["equal"] < figures["of"] == 7
        assert figures["difference"] > 1e-4
    with pytest.raises(ParityError, match="onnx: signature 'greedy' answers"):
        check.require_parity(report, "onnx")


def without(translator, option):
    """An `ask_process` of an export that ignores an option.

    It is the Translator itself, and ignores the option only when no other is
    given.
    """

    def run(command, folder, requests):
        answers = []
        for request in requests:
            signature, options = request.question
            if set(options) == {option}:
                options = {}
            inputs = {**request.inputs, **options}
            source_ids = inputs.pop("source_ids")
            outputs = exports.generate(
                translator, signature, source_ids, inputs
            )
            answers.append(
                {
                    name: {"value": value.tolist()}
                    for name, value in outputs.items()
                }
            )
        interface = {name: interface_of(name) for name in SIGNATURES}
        return {"interface": interface, "answers": answers}

    return run


@pytest.mark.parametrize("option", [None, *GREEDY_OPTIONS])
def test_an_option_that_does_nothing_by_itself_is_noticed(
    option, translator, monkeypatch
):
    monkeypatch.setattr(check, "ask_process", without(translator, option))
    texts = [exports.sentences()[i] for i in (0, 13, 22, 23, 36)]
    for every_option in (False, True):
        report = check_parity(
            translator,
            "folder",
            "onnx",
            ["greedy"],
            texts,
            batch_sizes=(2,),
            every_option=every_option,
        )
        noticed = report["greedy"]["equal"] < 5
        assert noticed == (every_option and option is not None)


def read_instead(graph, old, new):
    for node in graph.node:
        names = [new if name == old else name for name in node.input]
        node.input[:] = names
        for attribute in node.attribute:
            if attribute.HasField("g"):
                read_instead(attribute.g, old, new)


def test_a_graph_that_ignores_one_input_is_noticed(
    translator, exported, tmp_path
):
    broken = tmp_path / "broken"
    shutil.copytree(exported["onnx"], broken)
    model = onnx.load(broken / "sample.onnx", load_external_data=False)
    read_instead(model.graph, "top_k", "off")
    model.graph.initializer.append(
        onnx.numpy_helper.from_array(np.array(0, "int32"), "off")
    )
    onnx.save(model, broken / "sample.onnx")
    report = check_parity(
        translator,
        broken,
        "onnx",
        ("sample",),
        exports.sentences()[:9],
        batch_sizes=(9,),
        every_option=True,
    )
    assert 0 < report["sample"]["equal"] < report["sample"]["of"] == 9


def test_the_message_names_target_signature_and_counts():
    with pytest.raises(ParityError) as caught:
        check.require_parity(UNEQUAL, "saved_model")
    assert str(caught.value) == (
        "saved_model: signature 'beam' answers as the Translator does for 3 "
        "of 5 sentences; all are expected (tokens exactly, scores within "
        "0.0001; largest difference of scores 0.25)"
    )


def test_an_export_that_cannot_run_shows_why(translator, exported, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(exported["onnx"], broken)
    (broken / "greedy.onnx").write_bytes(b"no graph")
    message = f"(?s){broken}: a fresh process cannot run .*InvalidProtobuf"
    with pytest.raises(ParityError, match=message):
        check_parity(translator, broken, "onnx", ("greedy",), ["one"])


@pytest.mark.parametrize("runner", ["onnx", "saved_model"])
def test_a_right_interface_passes(runner):
    for signature in SIGNATURES:
        interface = interface_of(signature)
        if runner == "saved_model":
            for values in interface.values():
                for value in values.values():
                    value[1] = [None] * len(value[1])
        check._compare_interface(
            signature, interface, RUNNERS[runner].names_axes
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda i: i["inputs"].pop("min_length"),
            "greedy: inputs are named ['forbidden_ids', 'max_length', "
            "'no_repeat_ngram_size', 'repetition_penalty', 'source_ids', "
            "'target_prefix'], expected ['forbidden_ids', 'max_length', "
            "'min_length', 'no_repeat_ngram_size', 'repetition_penalty', "
            "'source_ids', 'target_prefix']",
        ),
        (
            lambda i: i["outputs"].update(ids=i["outputs"].pop("token_ids")),
            "greedy: outputs are named ['finished', 'ids', 'lengths', "
            "'scores'], expected ['finished', 'lengths', 'scores', "
            "'token_ids']",
        ),
        (
            lambda i: i["inputs"].update(source_ids=["int64", [None, None]]),
            "greedy: source_ids is int64, expected int32",
        ),
        (
            lambda i: i["outputs"].update(scores=["float32", [7]]),
            "greedy: scores has axes [7], expected ['batch']",
        ),
        (
            lambda i: i["inputs"].update(max_length=["int32", ["batch"]]),
            "greedy: max_length has axes ['batch'], expected []",
        ),
    ],
)
def test_a_wrong_interface_is_described(change, message):
    interface = copy.deepcopy(interface_of("greedy"))
    change(interface)
    with pytest.raises(ParityError) as caught:
        check._compare_interface("greedy", interface, named_axes=True)
    assert str(caught.value) == message


@pytest.fixture
def quick(monkeypatch, exported):
    """Makes exports skip the conversion: they write what was written."""

    def convert(function, signature, variables, precision):
        [name] = [n for n in TOKEN_SIGNATURES if SIGNATURES[n] is signature]
        model = onnx.load(exported["onnx"] / f"{name}.onnx")
        shrink(model.graph, precision)
        return model

    def save(module, folder, signatures):
        shutil.copytree(exported["of_ids"], folder, dirs_exist_ok=True)
        shutil.rmtree(f"{folder}/assets.extra")

    monkeypatch.setattr(graphs, "convert", convert)
    monkeypatch.setattr(saved_model.tf.saved_model, "save", save)


@pytest.mark.parametrize(
    ("export", "target"),
    [(export_onnx, "onnx"), (export_saved_model, "saved_model")],
)
def test_an_unequal_export_leaves_nothing(
    export, target, quick, translator, monkeypatch, tmp_path
):
    seen = []

    def unequal(translator, folder, *arguments):
        seen.extend(file.name for file in folder.iterdir())
        return UNEQUAL

    monkeypatch.setattr(frame, "check_parity", unequal)
    with pytest.raises(ParityError, match=f"{target}: signature 'beam' .* 3"):
        export(translator, tmp_path / "new" / "export")
    assert {"beam.onnx", "saved_model.pb"} & set(seen)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_smaller_weights_are_compared_with_what_they_can_be(
    precision, quick, translator, tmp_path
):
    texts = exports.sentences()[:5]
    report = export_onnx(
        translator, tmp_path / "small", texts, precision=precision
    )
    assert list(report) == list(SIGNATURES)
    if precision == "float16":  # With a Translator that is rounded, too.
        check.require_parity(report, "onnx")
    assert {figures["of"] for figures in report.values()} == {5}


def test_a_precision_that_is_none_is_refused(translator, tmp_path):
    message = r"one of \('float32', 'float16', 'int8'\), got precision='int4'"
    with pytest.raises(ValueError, match=message):
        export_onnx(translator, tmp_path / "export", precision="int4")


def test_a_text_with_nul_is_not_asked_of_onnx(quick, translator, tmp_path):
    """The runtime of its text to text reads no more than up to there."""
    report = export_onnx(translator, tmp_path / "onnx", ["one", "nul\0byte"])
    assert {figures["of"] for figures in report.values()} == {1}


@pytest.mark.parametrize("export", [export_onnx, export_saved_model])
def test_an_existing_folder_is_refused_at_once(
    export, translator, monkeypatch, tmp_path
):
    def fail(*arguments, **options):
        raise AssertionError("work was done before the folder was refused")

    for module, name in ((graphs, "convert"), (saved_model, "module_of")):
        monkeypatch.setattr(module, name, fail)
    (tmp_path / "kept").write_text("precious")
    (tmp_path / "empty").mkdir()
    for name in ("kept", "empty"):
        with pytest.raises(ValueError, match=f"{name}' exists; expected a"):
            export(translator, tmp_path / name)
    assert (tmp_path / "kept").read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "empty"}


@pytest.mark.parametrize(
    "missing", ["onnx", "tf2onnx", "onnxruntime", "onnxruntime_extensions"]
)
def test_a_missing_package_is_named_with_its_remedy(
    missing, translator, monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, missing, None)
    message = r"needs the extra 'export': pip install 'keras-transformer-seq"
    with pytest.raises(ImportError, match=message):
        export_onnx(translator, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []


def test_without_the_extras_all_but_their_exports_is_there():
    """In a process that has none of them from the beginning."""
    code = """
import sys
hidden = ["onnx", "onnxruntime", "onnxruntime_extensions", "tf2onnx"]
sys.modules.update(dict.fromkeys([*hidden, "ctranslate2"]))
import keras_transformer.cli
from keras_transformer import exporting
for name in exporting.__all__:
    getattr(exporting, name)
try:
    exporting.export_onnx(None, "nowhere")
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "needs the extra 'export'" in done.stdout


def test_sentences_come_from_the_run_or_from_random_pieces(translator):
    kept = translator.training["examples"]
    assert check.example_sentences(translator) == kept
    assert check.example_sentences(translator, 2) == kept[:2]
    bare = Translator(translator.transformer, translator.source_tokenizer)
    made = check.example_sentences(bare)
    assert made == check.example_sentences(bare)
    assert len(made) == 32 and len(set(made)) > 25
    assert all(text.strip() for text in made)


def test_a_runner_that_is_none_is_refused(translator):
    with pytest.raises(ValueError, match=r"one of .*'onnx'.*, got runner='on'"):
        check_parity(translator, "nowhere", "on")


def test_a_questioner_asks_the_translator_each_question_once(translator):
    questioner = Questioner(translator, ["one", "two"])
    question = Question("greedy", {"forbidden_ids": [5], "max_length": 3})
    first = questioner.expected(question)
    assert questioner.expected(question) is first
    other = questioner.expected(Question("greedy", {"max_length": 3}))
    assert other is not first


def test_every_runtime_says_what_it_is_not_asked():
    for name, runner in RUNTIMES.items():
        assert {*runner.signatures, *runner.not_asked} == set(SIGNATURES), name
        assert all(runner.not_asked.values()), name
        assert all(
            question.signature in runner.signatures
            for question in runner.questions or ()
        )
