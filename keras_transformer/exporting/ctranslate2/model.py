"""The Translator as a model of CTranslate2.

Its engine has its own decoding, so the folder holds weights and vocabularies
and no graph. Greedy and beam search of it are those of this package with
`early_stopping` and the length penalty `length ^ alpha`.
"""

from keras_transformer.decoding.option_checks import check_number
from keras_transformer.exporting.ctranslate2.weights import (
    ACTIVATIONS,
    activation_of,
    specification,
)
from keras_transformer.exporting.frame import write_export
from keras_transformer.exporting.metadata import facts_of, write_facts
from keras_transformer.exporting.parity.runners import RUNNERS

QUANTIZATIONS = (
    "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16",
    "float16", "bfloat16", "float32",
)  # fmt: skip
# So that there is room to compare.
_FEWEST_POSITIONS = 64
FLAGS = {
    "--quantization": {
        "choices": QUANTIZATIONS,
        "help": "of the weights of CTranslate2: %(choices)s; default none",
    },
    "--max-positions": {
        "type": int,
        "default": 1024,
        "metavar": "N",
        "help": "longest source and output of CTranslate2, default %(default)s",
    },
}


def export_ctranslate2(
    translator, folder, quantization=None, max_positions=1024, sentences=None
):
    """Writes a model that CTranslate2 loads and decodes.

    The folder holds `model.bin`, `config.json`, the vocabularies and the
    SentencePiece models: `ctranslate2.Translator(folder)` takes the pieces of
    a line, as `sentencepiece` encodes it, and gives those of its translation.

    `translate_batch(pieces, beam_size=K, num_hypotheses=N, length_penalty=
    alpha, min_decoding_length=0)` gives the tokens and scores that this
    package gives with `length_penalty_form=1, early_stopping=1`; if `alpha`
    is 0, the best hypothesis of `early_stopping=0`. Its defaults are others:
    2 beams, `alpha` 1, 256 tokens at most. It does not know that pad, bos
    and ids beyond those of the tokenizer are never generated, but no trained
    model wants them; and it ranks what is cut at the largest length among
    what has finished, not behind it.

    Args:
        translator: `Translator`.
        folder: where to; it is written beside, checked and renamed.
        quantization: how the weights are stored, as in CTranslate2 ("int8",
            "float16", ...); None for float32.
        max_positions: int, at least 64, the longest source and output, since
            CTranslate2 reads positions from a table. Its `max_input_length`
            cuts a source at 1,024 pieces if it is not told otherwise.
        sentences: list of str to check the export with; by default those
            kept with the run.

    Returns:
        The report of `check_parity`: all equal, or, for smaller weights, how
        many are, which it does not insist on.

    Raises:
        ImportError: if `ctranslate2` is not installed.
        ValueError: if `folder` exists, an argument is out of its range, or
            CTranslate2 cannot carry the model; all reasons are given.
        ParityError: if CTranslate2 does not answer as `translator` does; then
            nothing is left behind.
    """
    require_ctranslate2()
    check_ctranslate2(translator, quantization, max_positions)
    runner = RUNNERS["ctranslate2"]

    def write(translator, folder):
        spec = specification(translator, max_positions)
        spec.validate()
        spec.optimize(quantization=quantization)
        spec.save(str(folder))
        facts = {**facts_of(translator), "max_positions": max_positions}
        write_facts(translator, folder, facts)
        return runner.signatures

    return write_export(
        translator,
        folder,
        # Eos has a position, too.
        runner._replace(pieces=range(1, max_positions)),
        write,
        sentences,
        insist=quantization in (None, "float32"),
    )


def require_ctranslate2():
    """Raises ImportError, naming the extra, if `ctranslate2` is missing."""
    try:
        import ctranslate2  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "exporting to CTranslate2 needs the extra 'ctranslate2': "
            "pip install 'keras-transformer-seq2seq[ctranslate2]'"
        ) from error


def check_ctranslate2(translator, quantization=None, max_positions=1024):
    """Refuses what CTranslate2 cannot carry.

    Raises:
        ValueError: naming the option that is out of its range, or each
            argument of the model that does not fit.
    """
    if quantization not in (None, *QUANTIZATIONS):
        raise ValueError(
            f"quantization must be None or one of {QUANTIZATIONS}, got "
            f"quantization={quantization!r}"
        )
    check_number("max_positions", max_positions, _FEWEST_POSITIONS)
    attention = translator.transformer.decoder.layers[0].self_attention
    activation = activation_of(translator.transformer)
    reasons = []
    if attention.d_k != attention.d_v:
        reasons.append(f"d_k={attention.d_k} and d_v={attention.d_v} differ")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        reasons.append(
            f"activation={activation!r} is none of {sorted(ACTIVATIONS)}"
        )
    config = translator.transformer.get_config()
    for name in ("make_norm", "rotate"):
        if name in config:
            reasons.append(f"{name}={config[name]!r} is not of the paper")
    if reasons:
        raise ValueError(
            f"CTranslate2 cannot carry this model: {'; '.join(reasons)}"
        )
