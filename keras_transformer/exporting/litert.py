"""The Translator as a LiteRT model: one file for phones and small devices."""

import tempfile

import tensorflow as tf

from keras_transformer.decoding.signatures import SIGNATURES, TOKEN_SIGNATURES
from keras_transformer.exporting.frame import write_export
from keras_transformer.exporting.metadata import write_metadata
from keras_transformer.exporting.parity.runners import RUNNERS
from keras_transformer.exporting.saved_model import module_of

MODEL = "model.tflite"


def export_litert(translator, folder, sentences=None):
    """Writes a LiteRT model that decodes by itself, loop and all.

    The folder holds `model.tflite`, with the signatures `greedy`, `beam`,
    `sample`, `score` and `align` of `keras_transformer.decoding.SIGNATURES`
    over one set of weights, the tokenizers' SentencePiece models and
    `metadata.json`. All operators are built in: it needs no TensorFlow.

    Different from the other exports: LiteRT knows no defaults, so a client
    gives every input (`metadata.json` holds the defaults), and no empty ones:
    `[[pad]]` is no prefix, and `[-1]` forbids nothing.

    Args:
        translator: `Translator`.
        folder: where to; it is written beside, checked and renamed.
        sentences: list of str to check the export with; by default those
            kept with the run.

    Returns:
        The report of `check_parity`, all equal.

    Raises:
        ValueError: if `folder` exists, or LiteRT lacks an operator that the
            model needs.
        ParityError: if the export does not answer as `translator` does; then
            nothing is left behind.
    """
    return write_export(
        translator, folder, RUNNERS["litert"], _write, sentences
    )


def _write(translator, folder):
    (folder / MODEL).write_bytes(_convert(module_of(translator)))
    signatures = {name: SIGNATURES[name] for name in TOKEN_SIGNATURES}
    write_metadata(translator, folder, signatures)
    return TOKEN_SIGNATURES


def _convert(module):
    """Gives the bytes of the model."""
    names = list(TOKEN_SIGNATURES)
    with tempfile.TemporaryDirectory() as scratch:
        tf.saved_model.save(
            module, scratch, {name: getattr(module, name) for name in names}
        )
        converter = tf.lite.TFLiteConverter.from_saved_model(
            scratch, signature_keys=names
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        try:
            return converter.convert()
        except Exception as error:  # Its own class is not public.
            raise ValueError(
                "LiteRT cannot carry this model: "
                f"{str(error).strip().splitlines()[0]}"
            ) from error
