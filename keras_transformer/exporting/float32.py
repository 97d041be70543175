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
    copy = Transformer.from_config(
        {**transformer.get_config(), "dtype": "float32"}
    )
    copy.set_weights(transformer.get_weights())
    return Translator(
        copy,
        translator.source_tokenizer,
        translator.target_tokenizer,
        translator.training,
    )
