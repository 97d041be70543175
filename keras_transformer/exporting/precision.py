"""Exports are float32, whatever the model was trained in."""

from keras_transformer.transformer import Transformer
from keras_transformer.translator import Translator


def float32_translator(translator):
    """Gives the translator, or a float32 copy if it computes otherwise."""
    transformer = translator.transformer
    if transformer.dtype_policy.name == "float32":
        return translator
    return _copy(translator, transformer.get_weights())


def rounded_translator(translator):
    """Gives a copy in float32 whose matrices are rounded to float16."""
    weights = translator.transformer.get_weights()
    return _copy(
        translator,
        [
            w.astype("float16").astype("float32") if w.ndim > 1 else w
            for w in weights
        ],
    )


def _copy(translator, weights):
    copy = Transformer.from_config(
        {**translator.transformer.get_config(), "dtype": "float32"}
    )
    copy.set_weights(weights)
    return Translator(
        copy,
        translator.source_tokenizer,
        translator.target_tokenizer,
        translator.training,
    )
