"""CTranslate2 gives the tokens and scores of the Translator."""

import json
import sys

import keras
import numpy as np
import pytest

from keras_transformer import Transformer, Translator, export_ctranslate2
from keras_transformer.exporting import ParityError, frame
from keras_transformer.exporting.ctranslate2 import weights
from keras_transformer.folders import verify_checksums
from tests.support import exports
from tests.support.variants import VARIANT

SIZES = {"num_layers": 2, "num_heads": 2, "d_ff": 53}
MODELS = {
    "of the paper": {"d_model": 26},
    "pre-norm": {
        "d_model": 22,
        "norm_first": True,
        "activation": "gelu",
        "output_bias": True,
    },
    "two vocabularies": {
        "d_model": 22,
        "source_vocab_size": 293,
        "target_vocab_size": 283,
        "tying": "none",
        "output_bias": True,
        "activation": "silu",
        "epsilon": 0.01,
    },
    "odd": {"d_model": 23, "d_k": 7, "d_v": 7, "tying": "target"},
    # Ids that no tokenizer knows count in the probabilities all the same.
    "rounded up": {
        "d_model": 26,
        "source_vocab_size": 307,
        "output_bias": True,
        "dtype": "mixed_bfloat16",
    },
}


@pytest.fixture(scope="module")
def tokenizers():
    lines = exports.random_lines(400, 0)
    return exports.learn(lines, 293), exports.learn(lines, 283)


def make(tokenizers, **options):
    """An untrained model with every weight at random, norms and biases too."""
    options = {"source_vocab_size": 293, **SIZES, **options}
    keras.utils.set_random_seed(5)
    model = Transformer(**options)
    generator = np.random.default_rng(3)
    model.set_weights(
        [
            weight + generator.normal(0, 0.1, weight.shape)
            for weight in model.get_weights()
        ]
    )
    if options.get("output_bias"):
        # As unlikely as training makes them: pad, bos, and what is no piece.
        layer = model.output_projection or model.target_embedding
        bias = layer.bias.numpy()
        bias[[0, 1, *range(293, len(bias))]] = -8.0
        layer.bias.assign(bias)
    source, target = tokenizers
    if options.get("tying") != "none":
        target = None
    return Translator(model, source, target)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_that_it_can_carry_gives_the_same(
    name, tokenizers, tmp_path, monkeypatch
):
    monkeypatch.setattr(frame, "require_parity", lambda report, target: None)
    translator = make(tokenizers, **MODELS[name])
    lines = [*exports.random_lines(12, 1), *exports.STRANGE]
    report = export_ctranslate2(translator, tmp_path / "out", sentences=lines)
    # All but the two blank lines. Such a model seldom ends by itself, and at
    # the largest length CTranslate2 ranks what is cut among what has finished.
    assert report["greedy"]["equal"] == report["greedy"]["of"] == 20
    assert report["greedy"]["difference"] < 1e-4
    assert report["beam"]["equal"] >= 18
    outputs = set(translator.translate(lines, beam_size=4))
    assert len(outputs) > 10


def test_the_folder_holds_all_that_a_client_needs(tokenizers, tmp_path):
    translator = make(tokenizers, **MODELS["of the paper"])
    export_ctranslate2(
        translator, tmp_path / "out", sentences=["one"], max_positions=71
    )
    verify_checksums(tmp_path / "out")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert names == {
        "SHA256SUMS",
        "config.json",
        "metadata.json",
        "model.bin",
        "shared_vocabulary.json",
        "source_tokenizer.model",
        "target_tokenizer.model",
    }
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert metadata["max_positions"] == 71


def test_small_weights_are_small_and_need_not_be_equal(tokenizers, tmp_path):
    translator = make(tokenizers, d_model=26)
    lines = exports.random_lines(5, 1)
    export_ctranslate2(translator, tmp_path / "float32", sentences=["one"])
    report = export_ctranslate2(
        translator, tmp_path / "int8", "int8", sentences=lines
    )
    assert report["greedy"]["of"] == 5
    large, small = (
        (tmp_path / name / "model.bin").stat().st_size
        for name in ("float32", "int8")
    )
    assert small < 0.8 * large  # The table of positions stays as it is.


def test_all_that_it_cannot_carry_is_named(tokenizers, tmp_path):
    translator = make(
        tokenizers,
        d_model=26,
        activation="softplus",
        **{**VARIANT, "d_k": 6, "d_v": 7},
    )
    with pytest.raises(ValueError) as caught:
        export_ctranslate2(translator, tmp_path / "out")
    message = str(caught.value)
    assert message.startswith("CTranslate2 cannot carry this model: ")
    assert "d_k=6 and d_v=7 differ" in message
    assert "make_norm='mine>rms_norm' is not of the paper" in message
    assert "rotate='mine>rotary' is not of the paper" in message
    assert "activation='softplus' is none of ['gelu', 'relu'," in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"quantization": "int4"},
            r"must be None or one of \('int8',.*got quantization='int4'",
        ),
        ({"max_positions": 63}, "max_positions must be .*max_positions=63"),
        ({"max_positions": 99.5}, "max_positions must be .*=99.5"),
    ],
)
def test_arguments_out_of_range_are_refused(
    options, message, tokenizers, tmp_path
):
    translator = make(tokenizers, d_model=26)
    with pytest.raises(ValueError, match=message):
        export_ctranslate2(translator, tmp_path / "out", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named_with_its_remedy(
    tokenizers, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    translator = make(tokenizers, d_model=26)
    message = r"extra 'ctranslate2': pip install 'keras-transformer-seq"
    with pytest.raises(ImportError, match=message):
        export_ctranslate2(translator, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_unequal_export_leaves_nothing(tokenizers, tmp_path, monkeypatch):
    fill = weights._fill_norm

    def wrongly(spec, layer):
        fill(spec, layer)
        spec.beta = spec.beta + 0.5

    monkeypatch.setattr(weights, "_fill_norm", wrongly)
    translator = make(tokenizers, d_model=26)
    with pytest.raises(ParityError, match="ctranslate2: signature 'greedy'"):
        export_ctranslate2(
            translator, tmp_path / "out", sentences=exports.random_lines(5, 1)
        )
    assert list(tmp_path.iterdir()) == []
