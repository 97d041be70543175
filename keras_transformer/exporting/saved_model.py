"""The Translator as a TensorFlow SavedModel."""

import tensorflow as tf

from keras_transformer.decoding.signatures import (
    SIGNATURES,
    TOKEN_SIGNATURES,
    as_function,
)
from keras_transformer.exporting.frame import write_export
from keras_transformer.exporting.metadata import write_metadata
from keras_transformer.exporting.parity.runners import RUNNERS

FLAGS = {
    "--no-text": {
        "dest": "text",
        "action": "store_false",
        "help": "leave `translate` out of the SavedModel, so that loading "
        "needs TensorFlow alone",
    }
}


def export_saved_model(translator, folder, sentences=None, text=True):
    """Writes a SavedModel that decodes and translates by itself.

    Signatures: those of `keras_transformer.decoding.SIGNATURES` (`greedy`,
    `beam`, `sample`, `score`, `align`, and `translate`, which is also the
    default of servers), over one set of weights. Options are inputs; servers
    fill in their defaults. Python's `loaded.signatures[name]` wants every
    input, but `loaded.greedy`, `loaded.beam` and so on know the defaults too.

    The folder needs neither this package nor any other file. Loading it
    needs `import tensorflow_text`, since `translate` holds the tokenizer;
    with `text=False` that signature is left out, and TensorFlow is enough.

    Args:
        translator: `Translator`.
        folder: where to; it is written beside, checked and renamed.
        sentences: list of str to check the export with; by default those
            kept with the run.
        text: bool, whether to export `translate`.

    Returns:
        The report of `check_parity`, all equal.

    Raises:
        ValueError: if `folder` exists.
        ParityError: if the export does not answer as `translator` does; then
            nothing is left behind.
    """

    def write(translator, folder):
        module = module_of(translator, text)
        names = [name for name in SIGNATURES if hasattr(module, name)]
        signatures = {name: getattr(module, name) for name in names}
        default = signatures["translate" if text else "beam"]
        tf.saved_model.save(
            module, str(folder), {**signatures, "serving_default": default}
        )
        held = {name: SIGNATURES[name] for name in names}
        write_metadata(translator, folder / "assets.extra", held)
        return names

    return write_export(
        translator, folder, RUNNERS["saved_model"], write, sentences
    )


def module_of(translator, text=False):
    """Holds the functions, and all they need, for TensorFlow to save.

    Args:
        translator: `Translator`.
        text: bool, whether to hold `translate` and the tokenizers too.

    Returns:
        `tf.Module`, whose attributes are called as the signatures.
    """
    module = tf.Module()
    for name in TOKEN_SIGNATURES:
        setattr(module, name, getattr(translator.generator, name))
    module.variables_of_model = [
        weight.value for weight in translator.transformer.weights
    ]
    if text:
        module.tokenizers = [
            translator.source_tokenizer.tensor_tokenizer,
            translator.target_tokenizer.tensor_tokenizer,
        ]
        module.translate = as_function(
            _translate_function(translator), SIGNATURES["translate"]
        )
    return module


def _translate_function(translator):
    source, target = translator.source_tokenizer, translator.target_tokenizer
    beam = translator.generator.beam

    def translate(text, **options):
        pieces = source.tokenize_tensor(text)
        eos = tf.fill((tf.size(text), 1), source.eos_id)
        source_ids = tf.concat([pieces, eos], axis=1).to_tensor(source.pad_id)
        result = beam(source_ids, **options)
        rows = tf.shape(result["lengths"])
        # Without eos, and one row for each hypothesis.
        lengths = result["lengths"] - tf.cast(result["finished"], tf.int32)
        length = tf.shape(result["token_ids"])[2]
        token_ids = tf.RaggedTensor.from_tensor(
            tf.reshape(result["token_ids"], (rows[0] * rows[1], length)),
            lengths=tf.reshape(lengths, (-1,)),
        )
        texts = target.detokenize_tensor(token_ids)
        return {"text": tf.reshape(texts, rows), "scores": result["scores"]}

    return translate
