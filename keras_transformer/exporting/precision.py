"""Exports are float32, whatever the model was trained in."""

from keras_transformer.transformer import Transformer
from keras_transformer.translator import Translator


def float32_translator(translator):
    """Gives the translator, or a float32 copy if it computes otherwise.

    Args:
        translator: `Translator`.

    Returns:
        `Translator` whose model has the dtype policy float32.
    """
    transformer = translator.transformer
    if transformer.dtype_policy.name == "float32":
        return translator
    return _copy(translator, transformer.get_weights())


def rounded_translator(translator):
    """Gives a copy in float32 whose matrices are rounded to float16.

    Args:
        translator: `Translator`.

    Returns:
        `Translator`.
    """
    return _copy(
        translator,
        [
            weight.astype("float16").astype("float32")
            if weight.ndim > 1
            else weight
            for weight in translator.transformer.get_weights()
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
