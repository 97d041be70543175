"""Other models: pre-norm, untied, two tokenizers, trained in half precision."""

import numpy as np
import pytest

from keras_transformer import (
    Translator,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_transformer.exporting.precision import float32_translator
from tests.support import exports
from tests.support.decoding_runs import seeds
from tests.support.variants import VARIANT

RUNTIMES = {
    "onnx": exports.onnx_runtime,
    "saved_model": exports.saved_model_runtime,
}
NBEST = {"beam_size": 4, "num_hypotheses": 3, "length_penalty": 0.0}


def test_a_copy_in_float32_has_the_same_weights_and_tokenizers(variant):
    copy = float32_translator(variant)
    assert variant.transformer.dtype_policy.name == "mixed_bfloat16"
    assert copy.transformer.dtype_policy.name == "float32"
    for layer in copy.transformer.decoder.layers:
        assert layer.self_attention.query_projection.compute_dtype == "float32"
    pairs = zip(
        variant.transformer.get_weights(),
        copy.transformer.get_weights(),
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
    assert copy.source_tokenizer is variant.source_tokenizer
    assert copy.target_tokenizer is variant.target_tokenizer
    assert copy.training == variant.training


def test_a_float32_translator_is_not_copied(translator):
    assert float32_translator(translator) is translator


@pytest.mark.parametrize("runtime", ["onnx", "saved_model"])
def test_exports_of_half_precision_equal_the_float32_copy(
    runtime, variant, variant_exported
):
    ask = RUNTIMES[runtime](variant_exported[runtime])
    copy = float32_translator(variant)
    texts = exports.sentences()[:16]
    source_ids = copy.pad(copy.tokenize_source(texts))
    for signature, options in (
        ("greedy", {}),
        ("beam", {}),
        ("beam", NBEST),
        ("sample", {"seed": seeds(16), "top_p": 0.9}),
    ):
        expected = exports.generate(copy, signature, source_ids, options)
        found = ask(signature, source_ids, options)
        assert found["scores"].dtype == np.float32
        exports.assert_same_rows(
            exports.rows_of(found), exports.rows_of(expected)
        )
    greedy = exports.generate(copy, "greedy", source_ids, {})
    inputs = {"target_ids": greedy["token_ids"]}
    for signature in ("score", "align"):
        exports.assert_same_floats(
            ask(signature, source_ids, inputs),
            exports.generate(copy, signature, source_ids, inputs),
        )
    rounded = exports.generate(variant, "greedy", source_ids, {})["scores"]
    assert np.abs(rounded - greedy["scores"]).max() > 1e-3


@pytest.mark.parametrize("runtime", ["onnx", "saved_model"])
def test_only_the_ids_of_the_target_tokenizer_are_generated(
    runtime, variant, variant_exported
):
    ask = RUNTIMES[runtime](variant_exported[runtime])
    rows = variant.pad(variant.tokenize_source(exports.sentences()))
    beam = ask("beam", rows, {"beam_size": 5, "num_hypotheses": 5})
    hot = {"seed": seeds(len(rows)), "temperature": 100.0, "max_length": 29}
    sample = ask("sample", rows, hot)
    for found in (beam, sample):
        for ids, _, _ in exports.rows_of(found):
            for slot in ids:
                assert not {0, 1} & set(slot) and max(slot, default=0) < 283
    # All of them were drawn, or nearly so.
    assert len(np.unique(sample["token_ids"])) > 200


@pytest.fixture(scope="module")
def of_ones_own(tmp_path_factory):
    """RMSNorm and rotary positions, trained, saved and read from a run."""
    tokenizer = exports.learn(exports.random_lines(400, 0), 293)
    model = exports.train(
        tokenizer,
        source_vocab_size=293,
        num_layers=1,
        d_model=22,
        num_heads=2,
        d_ff=53,
        dropout=0.0,
        norm_first=True,
        epochs=3,
        **VARIANT,
    )
    run = tmp_path_factory.mktemp("of_ones_own") / "run"
    examples = {"examples": exports.sentences()[20:25]}
    Translator(model, tokenizer, training=examples).save(run)
    loaded = Translator.load(run)
    for one, other in zip(
        model.get_weights(), loaded.transformer.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    return loaded


@pytest.mark.parametrize("runtime", ["onnx", "saved_model"])
def test_exports_hold_a_norm_and_positions_of_ones_own(
    runtime, of_ones_own, tmp_path
):
    export = {"onnx": export_onnx, "saved_model": export_saved_model}[runtime]
    export(of_ones_own, tmp_path / runtime, exports.sentences()[:3])
    ask = RUNTIMES[runtime](tmp_path / runtime)
    texts = exports.sentences()[:16]
    source_ids = of_ones_own.pad(of_ones_own.tokenize_source(texts))
    for signature, options in (
        ("greedy", {}),
        ("beam", NBEST),
        ("sample", {"seed": seeds(16), "top_p": 0.9}),
    ):
        expected = exports.rows_of(
            exports.generate(of_ones_own, signature, source_ids, options)
        )
        assert len({str(ids) for ids, *_ in expected}) > 5
        found = exports.rows_of(ask(signature, source_ids, options))
        exports.assert_same_rows(found, expected)


def test_litert_holds_them_too(of_ones_own, tmp_path):
    # Compares with the Translator itself.
    export_litert(of_ones_own, tmp_path / "litert", exports.sentences()[:3])
    assert any((tmp_path / "litert").iterdir())
