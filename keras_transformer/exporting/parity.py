"""Does an export answer as the Translator does?

A fresh process that imports nothing of this package loads the export and
answers requests; names, types and axes are compared first, then tokens,
exactly, and scores.
"""

import functools
import pathlib
import random
import sys

from keras_transformer.decoding import SIGNATURES
from keras_transformer.exporting.parity_answers import difference, one_row
from keras_transformer.exporting.parity_process import (
    ParityError,
    ask_process,
)
from keras_transformer.exporting.parity_questions import (
    Questioner,
    questions_for,
)

TOLERANCE = 1e-4

_RUNNERS = pathlib.Path(__file__).parent / "runners"


def check_parity(
    translator,
    folder,
    runner,
    signatures,
    sentences=None,
    batch_sizes=(1, 32),
    every_option=False,
    questions=None,
    python=sys.executable,
    run=None,
    questioner=None,
):
    """Counts the sentences that an export decodes as the Translator does.

    The Translator decodes each sentence once; the export decodes it in each
    batch size, shuffled and with more padding than it needs, so what is
    compared depends on neither.

    Args:
        translator: `Translator`.
        folder: the exported folder.
        runner: "onnx", "saved_model", "litert", "openvino" or "ctranslate2";
            with `run` any name.
        signatures: list of names of signatures.
        sentences: list of str to translate; by default those of
            `example_sentences`.
        batch_sizes: list of int; a sentence counts as equal if it is in
            every batch size and with all options.
        every_option: bool, whether to ask with each option by itself, beside
            the defaults and all of them together.
        questions: list of `Question` to ask instead.
        python: the interpreter of the fresh process.
        run: function `(folder, requests)` that gives what `ask_process` does,
            for another runner than those here.
        questioner: `Questioner` of the translator that was used before,
            instead of `sentences`: the Translator need not answer again.

    Returns:
        Dict of signature to a dict of `equal` and `of`, numbers of sentences,
        and `difference`, the largest of scores and other floats.

    Raises:
        ValueError: if `questioner` is of another Translator, or there are
            `sentences` too.
        ParityError: if names, types or axes differ from `SIGNATURES`, or the
            process fails. Unequal sentences are counted, not raised.
    """
    if questioner is None:
        if sentences is None:
            sentences = example_sentences(translator)
        questioner = Questioner(translator, sentences)
    elif sentences is not None or questioner.translator is not translator:
        raise ValueError(
            "questioner must be of the translator, and stand instead of "
            f"sentences, got sentences={sentences} and the questioner of "
            f"{questioner.translator!r}"
        )
    requests = [
        request
        for question in questions or questions_for(signatures, every_option)
        for size in batch_sizes
        for request in questioner.requests(question, size)
    ]
    if run is None:
        run = functools.partial(_run, python, runner)
    reply = run(folder, requests)
    if reply["interface"] is not None:  # A runtime with one of its own.
        for signature in signatures:
            _compare_interface(signature, reply["interface"][signature], runner)
    apart = {
        signature: dict.fromkeys(range(questioner.count), 0.0)
        for signature in signatures
    }
    for request, answer in zip(requests, reply["answers"], strict=True):
        found = apart[request.question.signature]
        for sentence, gap in _compare(questioner, request, answer, runner):
            found[sentence] = max(found[sentence], gap)
    return {
        signature: {
            "equal": sum(value <= TOLERANCE for value in found.values()),
            "of": questioner.count,
            "difference": max(found.values()),
        }
        for signature, found in apart.items()
    }


def _compare(questioner, request, answer, runner):
    """Gives how far apart the answers for each sentence of a request are."""
    pad_id = questioner.translator.transformer.pad_id
    answer = {name: output["value"] for name, output in answer.items()}
    expected = questioner.expected(request.question)
    if runner == "onnx" and "text" in expected:
        # Its runtime cuts a text at a NUL, which a weak model may write.
        cut = [
            [text.split("\0")[0] for text in row] for row in expected["text"]
        ]
        expected = {**expected, "text": cut}
    if set(answer) != set(expected):
        raise ParityError(
            f"{request.question.signature}: outputs are named "
            f"{sorted(answer)}, expected {sorted(expected)}"
        )
    for row, sentence in enumerate(request.sentences):
        yield (
            sentence,
            difference(
                one_row(answer, row, pad_id),
                one_row(expected, sentence, pad_id),
            ),
        )


def require_parity(report, target):
    """Raises ParityError unless every sentence of a report is equal."""
    for signature, figures in report.items():
        if figures["equal"] < figures["of"]:
            raise ParityError(
                f"{target}: signature {signature!r} answers as the Translator "
                f"does for {figures['equal']} of {figures['of']} sentences; "
                f"all are expected (tokens exactly, scores within {TOLERANCE}; "
                f"largest difference of scores {figures['difference']:.2g})"
            )


def example_sentences(translator, count=32):
    """Gives source sentences: those kept with the run, or random pieces."""
    examples = translator.training.get("examples")
    if examples:
        return list(examples)[:count]
    rng = random.Random(0)
    tokenizer = translator.source_tokenizer
    special = {
        tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id
    }  # fmt: skip
    pieces = [i for i in range(tokenizer.vocab_size) if i not in special]
    texts = (
        tokenizer.detokenize(rng.choices(pieces, k=rng.randint(1, 12)))
        for _ in range(count)
    )
    return [text if text.strip() else "a" for text in texts]


def _run(python, runner, folder, requests):
    """Lets a Python process that imports nothing of this package answer."""
    # Python looks for modules where a script really is, so it is read.
    script = (_RUNNERS / f"run_{runner}.py").read_text("utf-8")
    return ask_process([python, "-c", script], folder, requests)


def _compare_interface(signature, interface, runner):
    """Compares names, then types, then axes with the contract."""
    for side in ("inputs", "outputs"):
        expected = {
            argument.name: argument
            for argument in getattr(SIGNATURES[signature], side)
        }
        found = interface[side]
        if set(found) != set(expected):
            raise ParityError(
                f"{signature}: {side} are named {sorted(found)}, expected "
                f"{sorted(expected)}"
            )
        for name, (dtype, shape) in found.items():
            argument = expected[name]
            if dtype != argument.dtype:
                raise ParityError(
                    f"{signature}: {name} is {dtype}, expected {argument.dtype}"
                )
            free = [None] * len(argument.shape)
            axes = list(argument.shape) if runner == "onnx" else free
            if shape != axes:
                raise ParityError(
                    f"{signature}: {name} has axes {shape}, expected {axes}"
                )
