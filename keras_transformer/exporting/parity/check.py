"""Does an export answer as the Translator does?

A fresh process that imports nothing of this package loads the export and
answers requests; names, types and axes are compared first, then tokens,
exactly, and scores.
"""

import random

from keras_transformer.decoding import SIGNATURES
from keras_transformer.exporting.parity.answers import difference, one_row
from keras_transformer.exporting.parity.process import ParityError, ask_process
from keras_transformer.exporting.parity.questions import (
    Questioner,
    questions_for,
)
from keras_transformer.exporting.parity.runners import RUNNERS

TOLERANCE = 1e-4


def check_parity(
    translator,
    folder,
    runner,
    signatures=None,
    sentences=None,
    batch_sizes=(1, 32),
    every_option=False,
):
    """Counts the sentences that an export decodes as the Translator does.

    The Translator decodes each sentence once; the export decodes it in each
    batch size, shuffled and with more padding than it needs, so what is
    compared depends on neither.

    Args:
        translator: `Translator`.
        folder: the exported folder.
        runner: "onnx", "saved_model", "litert", "openvino" or "ctranslate2",
            or another `Runner`.
        signatures: list of names of signatures; by default all that the
            runner can be asked.
        sentences: list of str to translate; by default those of
            `example_sentences`. What the runner cannot be asked is left out.
        batch_sizes: list of int; a sentence counts as equal if it is in
            every batch size and with all options.
        every_option: bool, whether to ask with each option by itself, beside
            the defaults and all of them together.

    Returns:
        Dict of signature to a dict of `equal` and `of`, numbers of sentences,
        and `difference`, the largest of scores and other floats.

    Raises:
        ValueError: if `runner` is the name of none.
        ParityError: if names, types or axes differ from `SIGNATURES`, or the
            process fails. Unequal sentences are counted, not raised.
    """
    if isinstance(runner, str):
        if runner not in RUNNERS:
            raise ValueError(
                f"runner must be a Runner or one of {tuple(RUNNERS)}, got "
                f"runner={runner!r}"
            )
        runner = RUNNERS[runner]
    if signatures is None:
        signatures = runner.signatures
    if sentences is None:
        sentences = example_sentences(translator)
    questioner = Questioner(translator, runner.askable(translator, sentences))
    questions = runner.questions or questions_for(signatures, every_option)
    return compare(questioner, folder, runner, questions, batch_sizes)


def compare(questioner, folder, runner, questions, batch_sizes):
    """Does what `check_parity` does, with a `Questioner` and a `Runner`.

    Args:
        questioner: `Questioner`, of sentences that the runner can be asked.
        folder: the exported folder.
        runner: `Runner`.
        questions: list of `Question`.
        batch_sizes: list of int.

    Returns:
        The report, on the signatures of the questions.
    """
    requests = [
        request
        for question in questions
        for size in batch_sizes
        for request in questioner.requests(question, size)
    ]
    reply = ask_process(runner.command, folder, requests)
    signatures = list(dict.fromkeys(each.signature for each in questions))
    if reply["interface"] is not None:  # A runtime with one of its own.
        for signature in signatures:
            _compare_interface(
                signature, reply["interface"][signature], runner.names_axes
            )
    apart = {s: dict.fromkeys(range(questioner.count), 0.0) for s in signatures}
    for request, answer in zip(requests, reply["answers"], strict=True):
        found = apart[request.question.signature]
        expected = questioner.expected(request.question)
        if runner.cuts_at_nul and "text" in expected:
            rows = expected["text"]  # A weak model may write one.
            rows = [[text.split("\0")[0] for text in row] for row in rows]
            expected = {**expected, "text": rows}
        pad_id = questioner.translator.transformer.pad_id
        for sentence, gap in _gaps(request, answer, expected, pad_id):
            found[sentence] = max(found[sentence], gap)
    return {
        signature: {
            "equal": sum(value <= TOLERANCE for value in found.values()),
            "of": questioner.count,
            "difference": max(found.values()),
        }
        for signature, found in apart.items()
    }


def _gaps(request, answer, expected, pad_id):
    """Gives how far apart the answers for each sentence of a request are."""
    answer = {name: output["value"] for name, output in answer.items()}
    if set(answer) != set(expected):
        raise ParityError(
            f"{request.question.signature}: outputs are named "
            f"{sorted(answer)}, expected {sorted(expected)}"
        )
    for row, sentence in enumerate(request.sentences):
        found = one_row(answer, row, pad_id)
        yield sentence, difference(found, one_row(expected, sentence, pad_id))


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


def _compare_interface(signature, interface, named_axes):
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
            axes = [axis if named_axes else None for axis in argument.shape]
            if shape != axes:
                raise ParityError(
                    f"{signature}: {name} has axes {shape}, expected {axes}"
                )
