"""The Translator as ONNX graphs, for all that can be said without onnx."""

from keras_transformer.exporting.frame import write_export
from keras_transformer.exporting.metadata import write_metadata
from keras_transformer.exporting.parity.runners import RUNNERS
from keras_transformer.exporting.precision import (
    float32_translator,
    rounded_translator,
)
from keras_transformer.exporting.tokenizer_json import (
    tokenizer_json,
    write_tokenizer_json,
)

PRECISIONS = ("float32", "float16", "int8")
FLAGS = {
    "--precision": {
        "choices": PRECISIONS,
        "default": PRECISIONS[0],
        "help": "of the weights of ONNX: %(choices)s; default %(default)s",
    }
}


def export_onnx(translator, folder, sentences=None, precision="float32"):
    """Writes ONNX graphs that decode by themselves, loop and all.

    The folder holds `greedy.onnx`, `beam.onnx`, `sample.onnx`, `score.onnx`
    and `align.onnx`, which follow `keras_transformer.decoding.SIGNATURES`, the
    one `weights.bin` that they share, the tokenizers' SentencePiece models and
    `metadata.json`. Options are inputs with defaults: a client names only what
    it changes, numbers as 0-d arrays. All operators are standard ONNX.
    `translate.onnx`, text to text, needs those of onnxruntime-extensions too;
    its output is called `texts`, since `text` is its input, and its runtime
    cuts a text at a NUL.

    For JavaScript there are the tokenizers as `source_tokenizer.json` and
    `target_tokenizer.json`; for it and OpenVINO `greedy.explicit.onnx` and so
    on, whose options have no default, since these runtimes cannot feed an
    input that has one.

    Args:
        translator: `Translator`.
        folder: where to; it is written beside, checked and renamed.
        sentences: list of str to check the export with; by default those
            kept with the run.
        precision: how the weights are stored. "float16" computes in float32
            with weights rounded to half precision, in half the room. "int8"
            multiplies integers, in a quarter of it: 7 bits for weights, with
            a scale for each column, and 8 bits for what they are multiplied
            with, with a scale for each row, so that a sentence still does not
            depend on its neighbours.

    Returns:
        The report of `check_parity`: all equal for "float32", and for
        "float16" to a Translator with such weights; for "int8" how many are,
        which it does not insist on.

    Raises:
        ImportError: if the extra `export` is not installed.
        ValueError: if `folder` exists, `precision` is none of these, a
            tokenizer is of another type than "bpe" and "unigram", or an
            operator has no standard ONNX counterpart.
        ParityError: if the export does not answer as `translator` does; then
            nothing is left behind.
    """
    require_onnx()
    check_onnx(translator, precision)

    def write(translator, folder):
        # Not before: an installation may lack onnx.
        from keras_transformer.exporting.onnx import write_graphs

        signatures = write_graphs(translator, folder, precision)
        write_metadata(translator, folder, signatures)
        for side in ("source", "target"):
            tokenizer = getattr(translator, f"{side}_tokenizer")
            write_tokenizer_json(tokenizer, folder / f"{side}_tokenizer.json")
        return signatures

    return write_export(
        translator,
        folder,
        RUNNERS["onnx"],
        write,
        sentences,
        rounded_translator if precision == "float16" else float32_translator,
        insist=precision != "int8",
    )


def require_onnx():
    """Raises ImportError, naming the extra, if a package is missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401  The parity check runs these two.
        import onnxruntime_extensions  # noqa: F401
        import tf2onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "exporting to ONNX needs the extra 'export': "
            "pip install 'keras-transformer-seq2seq[export]'"
        ) from error


def check_onnx(translator, precision="float32"):
    """Raises ValueError for a precision or a tokenizer that cannot be held."""
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision must be one of {PRECISIONS}, got "
            f"precision={precision!r}"
        )
    for side in ("source", "target"):
        tokenizer_json(getattr(translator, f"{side}_tokenizer").model_proto)
