"""The model that all engines of `decode.py` decode with, as each reads it.

Its weights are random. It has an output bias, so that pad, bos and unknown are
never generated, as by a trained model, and so that outputs end, some early and
some late.
"""

import argparse
import json
import pathlib
import random
import shutil

import keras
import numpy as np

from keras_transformer import (
    BASE,
    Tokenizer,
    Transformer,
    Translator,
    export_ctranslate2,
    export_onnx,
    export_saved_model,
)
from keras_transformer.layers import positional_encoding
from keras_transformer.text import read_lines

SIZES = {
    "tiny": (
        8_000,
        {"num_layers": 3, "d_model": 256, "num_heads": 4, "d_ff": 1024},
    ),
    "base": (32_000, BASE),
}
NEVER = -1e4
# With it some outputs end early and some late.
EOS_BIAS = 2.2
LONGEST = 256


def make(size, lines, folder):
    """Writes the model in all formats.

    Args:
        size: a key of `SIZES`.
        lines: list of str, sentences that the tokenizer should know.
        folder: `pathlib.Path`, where to; `sources.json` in it holds the ids of
            the lines.
    """
    vocab_size, sizes = SIZES[size]
    keras.utils.set_random_seed(1)
    tokenizer = Tokenizer.train_from_lines(
        [*lines, *random_lines(2 * vocab_size)], vocab_size
    )
    model = Transformer(vocab_size, output_bias=True, **sizes)
    bias = np.zeros(vocab_size, "float32")
    bias[[model.pad_id, model.bos_id, model.unk_id]] = NEVER
    bias[model.eos_id] = EOS_BIAS
    model.target_embedding.bias.assign(bias)
    translator = Translator(model, tokenizer)
    few = ["a", "of the"]
    translator.save(folder / "run")
    export_saved_model(translator, folder / "saved_model", few)
    for precision in ("float32", "int8"):
        export_onnx(translator, folder / f"onnx_{precision}", few, precision)
    export_ctranslate2(translator, folder / "ctranslate2", sentences=few)
    np.savez(folder / "marian.npz", **marian_weights(model))
    sources = {"vocab_size": vocab_size, "ids": tokenizer.tokenize(lines)}
    (folder / "sources.json").write_text(json.dumps(sources), "utf-8")


def random_lines(count):
    """Lines of words at random, so that any vocabulary can be filled."""
    rng = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [
        "".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(count)
    ]
    return [" ".join(rng.choices(words, k=12)) for _ in range(count // 4)]


def marian_weights(model):
    """The weights under the names of `transformers.MarianMTModel`."""
    embeddings = model.target_embedding.embeddings
    positions = positional_encoding(np.arange(LONGEST), model.d_model)
    weights = {
        "model.shared.weight": embeddings,
        "lm_head.weight": embeddings,
        "final_logits_bias": model.target_embedding.bias[None],
    }
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        weights[f"model.{side}.embed_tokens.weight"] = embeddings
        weights[f"model.{side}.embed_positions.weight"] = positions
        for i, layer in enumerate(stack.layers):
            prefix = f"model.{side}.layers.{i}"
            _attention(weights, f"{prefix}.self_attn", layer.self_attention)
            _norm(
                weights,
                f"{prefix}.self_attn_layer_norm",
                layer.self_attention_norm,
            )
            if side == "decoder":
                _attention(
                    weights, f"{prefix}.encoder_attn", layer.cross_attention
                )
                _norm(
                    weights,
                    f"{prefix}.encoder_attn_layer_norm",
                    layer.cross_attention_norm,
                )
            _dense(weights, f"{prefix}.fc1", layer.feed_forward.inner)
            _dense(weights, f"{prefix}.fc2", layer.feed_forward.outer)
            _norm(
                weights, f"{prefix}.final_layer_norm", layer.feed_forward_norm
            )
    return {
        name: keras.ops.convert_to_numpy(value)
        for name, value in weights.items()
    }


def _attention(weights, prefix, attention):
    for name, projection in (
        ("q_proj", attention.query_projection),
        ("k_proj", attention.key_projection),
        ("v_proj", attention.value_projection),
        ("out_proj", attention.output_projection),
    ):
        _dense(weights, f"{prefix}.{name}", projection)


def _dense(weights, prefix, dense):
    weights[f"{prefix}.weight"] = keras.ops.transpose(dense.kernel)
    weights[f"{prefix}.bias"] = dense.bias


def _norm(weights, prefix, add_norm):
    weights[f"{prefix}.weight"] = add_norm.norm.gamma
    weights[f"{prefix}.bias"] = add_norm.norm.beta


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("source", help="file of sentences")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    lines = read_lines(arguments.source)
    beside = arguments.folder.with_suffix(".part")
    shutil.rmtree(beside, ignore_errors=True)
    make(arguments.size, lines, beside)
    beside.rename(arguments.folder)


if __name__ == "__main__":
    main()
