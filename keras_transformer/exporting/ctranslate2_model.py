"""The Translator as a model of CTranslate2.

Its engine has its own decoding, so the folder holds weights and vocabularies
and no graph. Greedy and beam search of it are those of this package with
`early_stopping` and the length penalty `length ^ alpha`.
"""

import json

from keras_transformer.decoding.options import check_number
from keras_transformer.decoding.penalties import POWER
from keras_transformer.exporting.ctranslate2_weights import (
    ACTIVATIONS,
    activation_of,
    specification,
)
from keras_transformer.exporting.float32 import float32_translator
from keras_transformer.exporting.metadata import METADATA, facts_of
from keras_transformer.exporting.parity import (
    check_parity,
    example_sentences,
    require_parity,
)
from keras_transformer.exporting.parity_questions import Question
from keras_transformer.folders import new_folder, refuse_existing

QUANTIZATIONS = (
    "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16",
    "float16", "bfloat16", "float32",
)  # fmt: skip
SIGNATURES = ("greedy", "beam")
# So that there is room to compare.
_FEWEST_POSITIONS = 64


def _beam(beam_size, num_hypotheses, length_penalty):
    """A question of beam search that CTranslate2 can be asked.

    Without a length penalty it stops once the best candidate of a step is an
    end, which finds the best hypothesis, as the exact rule does.
    """
    options = {
        "beam_size": beam_size,
        "num_hypotheses": num_hypotheses,
        "length_penalty": length_penalty,
        "length_penalty_form": POWER,
        "early_stopping": int(length_penalty != 0),
        "max_length": 60,
    }
    return Question("beam", options)


QUESTIONS = (
    Question("greedy", {"max_length": 60}),
    Question("greedy", {"max_length": 7}),
    _beam(4, 1, 0.0),
    _beam(4, 4, 0.6),
    _beam(5, 5, 1.0),
)


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
    refuse_existing(folder)
    if quantization not in (None, *QUANTIZATIONS):
        raise ValueError(
            f"quantization must be None or one of {QUANTIZATIONS}, got "
            f"quantization={quantization!r}"
        )
    check_number("max_positions", max_positions, _FEWEST_POSITIONS)
    import_ctranslate2()
    check_ctranslate2(translator)
    translator = float32_translator(translator)
    spec = specification(translator, max_positions)
    spec.validate()
    spec.optimize(quantization=quantization)
    with new_folder(folder) as beside:
        spec.save(str(beside))
        translator.source_tokenizer.save(beside / "source_tokenizer.model")
        translator.target_tokenizer.save(beside / "target_tokenizer.model")
        facts = {**facts_of(translator), "max_positions": max_positions}
        (beside / METADATA).write_text(json.dumps(facts, indent=2) + "\n")
        report = check_parity(
            translator,
            beside,
            "ctranslate2",
            SIGNATURES,
            askable(translator, sentences, max_positions),
            questions=QUESTIONS,
        )
        if quantization in (None, "float32"):
            require_parity(report, "ctranslate2")
    return report


def askable(translator, sentences=None, max_positions=1024):
    """Leaves out blank lines, which a client answers, and too long ones.

    Args:
        translator: `Translator`.
        sentences: list of str, or None for those of `example_sentences`.
        max_positions: int, as of `export_ctranslate2`.

    Returns:
        List of str.
    """
    if sentences is None:
        sentences = example_sentences(translator)
    rows = translator.source_tokenizer.tokenize(sentences)
    return [
        text
        for text, row in zip(sentences, rows, strict=True)
        if 0 < len(row) < max_positions
    ]


def import_ctranslate2():
    """Imports `ctranslate2`; ImportError names the extra that is missing."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ImportError(
            "exporting to CTranslate2 needs the extra 'ctranslate2': "
            "pip install 'keras-transformer-seq2seq[ctranslate2]'"
        ) from error
    return ctranslate2


def check_ctranslate2(translator):
    """Refuses what CTranslate2 cannot carry.

    Raises:
        ValueError: naming each argument of the model that does not fit.
    """
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
