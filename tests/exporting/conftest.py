"""One model, exported once in each way for all tests of the exports."""

import shutil

import pytest

from keras_transformer import (
    Translator,
    export_litert,
    export_onnx,
    export_saved_model,
)
from tests.support import exports
from tests.support.decoding_runs import seeds

SIZES = {"num_layers": 2, "num_heads": 2, "d_ff": 53}


@pytest.fixture(scope="session")
def translator(tmp_path_factory):
    """Post-norm, all tied, high dropout, read from a run now deleted."""
    lines = exports.random_lines(400, 0)
    tokenizer = exports.learn(lines, 293)
    model = exports.train(
        tokenizer, source_vocab_size=307, d_model=26, dropout=0.0, **SIZES
    )
    model = exports.with_options(
        model, dropout=0.5, attention_dropout=0.5, feed_forward_dropout=0.5
    )
    run = tmp_path_factory.mktemp("trained") / "run"
    training = {"examples": exports.sentences()[20:27]}
    Translator(model, tokenizer, training=training).save(run)
    loaded = Translator.load(run)
    shutil.rmtree(run)
    return loaded


@pytest.fixture(scope="session")
def variant():
    """One layer, pre-norm, nothing tied, two tokenizers, half precision."""
    lines = exports.random_lines(400, 0)
    source = exports.learn(lines, 293)
    target = exports.learn(lines, 283)
    model = exports.train(
        source,
        target,
        source_vocab_size=293,
        target_vocab_size=289,
        d_model=22,
        d_k=7,
        d_v=5,
        dropout=0.0,
        norm_first=True,
        tying="none",
        output_bias=True,
        epochs=3,
        **{**SIZES, "num_layers": 1},
    )
    model = exports.with_options(model, dtype="mixed_bfloat16")
    training = {"examples": exports.sentences()[20:25]}
    return Translator(model, source, target, training)


@pytest.fixture(scope="session")
def exported(translator, tmp_path_factory):
    """Folders of the exports, by name."""
    folder = tmp_path_factory.mktemp("exported")
    export_saved_model(translator, folder / "saved_model")
    few = exports.sentences()[:3]
    export_saved_model(translator, folder / "of_ids", few, text=False)
    export_onnx(translator, folder / "onnx")
    export_litert(translator, folder / "litert", few)
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="session")
def runtimes(exported):
    """Functions `(signature, source_ids, options)`, one a runtime."""
    return {
        "onnx": exports.onnx_runtime(exported["onnx"]),
        "saved_model": exports.saved_model_runtime(exported["saved_model"]),
        "of_ids": exports.saved_model_runtime(exported["of_ids"]),
    }


@pytest.fixture(scope="session")
def source_ids(translator):
    """All sentences as one batch."""
    texts = exports.sentences()
    return translator.pad(translator.tokenize_source(texts))


@pytest.fixture(scope="session")
def asked(translator, source_ids):
    """What each signature needs beside `source_ids`, a row a sentence."""
    greedy = exports.generate(translator, "greedy", source_ids, {})
    target = {"target_ids": greedy["token_ids"]}
    return {
        "greedy": {},
        "beam": {},
        "sample": {"seed": seeds(len(source_ids))},
        "score": target,
        "align": target,
    }


@pytest.fixture(scope="session")
def variant_exported(variant, tmp_path_factory):
    """Folders of the exports of `variant`, by name."""
    folder = tmp_path_factory.mktemp("variant")
    export_saved_model(variant, folder / "saved_model")
    export_onnx(variant, folder / "onnx")
    return {path.name: path for path in folder.iterdir()}
