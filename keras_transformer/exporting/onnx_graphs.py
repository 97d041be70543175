"""The Translator as ONNX graphs that share one file of weights."""

from keras_transformer.decoding.signatures import (
    SIGNATURES,
    TOKEN_SIGNATURES,
)
from keras_transformer.exporting.float32 import (
    float32_translator,
    rounded_translator,
)
from keras_transformer.exporting.metadata import write_metadata
from keras_transformer.exporting.onnx_conversion import convert
from keras_transformer.exporting.onnx_loops import graphs_of
from keras_transformer.exporting.onnx_weights import share_weights
from keras_transformer.exporting.parity import (
    check_parity,
    example_sentences,
    require_parity,
)
from keras_transformer.exporting.tokenizer_json import (
    check_tokenizer,
    write_tokenizer_json,
)
from keras_transformer.folders import new_folder, refuse_existing

PRECISIONS = ("float32", "float16", "int8")


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
    refuse_existing(folder)
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision must be one of {PRECISIONS}, got "
            f"precision={precision!r}"
        )
    import_onnx()
    for side in ("source", "target"):
        check_tokenizer(getattr(translator, f"{side}_tokenizer"))
    translator = float32_translator(translator)
    if precision == "float16":
        translator = rounded_translator(translator)
    models = {
        name: convert(
            getattr(translator.generator, name),
            SIGNATURES[name],
            translator.transformer.variables,
        )
        for name in TOKEN_SIGNATURES
    }
    for name, model in models.items():
        _refuse_other_operators(name, model)
    prepare_weights(models, precision)
    with new_folder(folder) as beside:
        _write(models, translator, beside)
        if sentences is None:
            sentences = example_sentences(translator)
        report = check_parity(
            translator,
            beside,
            "onnx",
            tuple(SIGNATURES),
            # Of text to text the runtime reads no more than up to there.
            [text for text in sentences if "\0" not in text],
        )
        if precision != "int8":
            require_parity(report, "onnx")
    return report


def prepare_weights(models, precision):
    """Makes weights smaller if asked, and lets runtimes prepare them.

    Args:
        models: dict of name to `onnx.ModelProto`, as converted; changed in
            place.
        precision: str, of `PRECISIONS`.
    """
    # They import onnx, which an installation may lack.
    from keras_transformer.exporting import onnx_small
    from keras_transformer.exporting.onnx_packing import pack_weights

    shrink = {"float16": onnx_small.to_float16, "int8": onnx_small.to_int8}
    for model in models.values():
        if precision in shrink:
            shrink[precision](model.graph)
        # Last: `to_int8` leaves alone what a Reshape reads.
        pack_weights(model.graph)


def _write(models, translator, folder):
    """Writes graphs, weights, tokenizers and metadata."""
    import onnx

    from keras_transformer.exporting.onnx_text import TRANSLATE, with_text

    share_weights(models, folder)
    write_explicit(models, folder)
    translate = with_text(models["beam"], translator)
    (folder / "translate.onnx").write_bytes(translate.SerializeToString())
    for file in folder.glob("*.onnx"):
        onnx.checker.check_model(str(file), full_check=True)
    signatures = {name: SIGNATURES[name] for name in models}
    write_metadata(translator, folder, {**signatures, "translate": TRANSLATE})
    for side in ("source", "target"):
        write_tokenizer_json(
            getattr(translator, f"{side}_tokenizer"),
            folder / f"{side}_tokenizer.json",
        )


def write_explicit(models, folder):
    """Writes graphs whose options have no defaults.

    Args:
        models: dict of name to `onnx.ModelProto`, with weights in a file.
        folder: `pathlib.Path`; gets `<name>.explicit.onnx` for each that has
            options.
    """
    for name, model in models.items():
        defaults = {
            argument.name
            for argument in SIGNATURES[name].inputs
            if argument.default is not None
        }
        if defaults:
            copy = type(model)()
            copy.CopyFrom(model)
            kept = [
                t for t in model.graph.initializer if t.name not in defaults
            ]
            del copy.graph.initializer[:]
            copy.graph.initializer.extend(kept)
            path = folder / f"{name}.explicit.onnx"
            path.write_bytes(copy.SerializeToString())


def import_onnx():
    """Imports `onnx`; ImportError names the extra that is missing."""
    try:
        import onnx
        import onnxruntime  # noqa: F401  The parity check runs these two.
        import onnxruntime_extensions  # noqa: F401
        import tf2onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "exporting to ONNX needs the extra 'export': "
            "pip install 'keras-transformer-seq2seq[export]'"
        ) from error
    return onnx


def _refuse_other_operators(name, model):
    """Raises ValueError if a graph, or one within it, is not plain ONNX."""
    others = sorted(
        {
            f"{node.domain}::{node.op_type}"
            for part in graphs_of(model.graph)
            for node in part.node
            if node.domain not in ("", "ai.onnx")
        }
    )
    if others:
        raise ValueError(
            f"{name}: operators without a standard ONNX counterpart: "
            f"{', '.join(others)}"
        )
