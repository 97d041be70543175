"""Does an export answer as the Translator does?

A fresh process that imports nothing of this package loads the export and
answers requests; names, types and axes are compared first, then tokens,
exactly, and scores.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding import SIGNATURES

SCORE_TOLERANCE = 1e-4

_RUNNERS = pathlib.Path(__file__).parent / "runners"
_NBEST = {
    "beam_size": 4,
    "num_hypotheses": 4,
    "length_penalty": 0.0,
    "max_length": -1,
    "min_length": 0,
}
# What each signature is asked with: its defaults, then every input given.
_OPTIONS = {
    "greedy": ({}, {"max_length": 9, "min_length": 2}),
    "beam": ({}, _NBEST),
    "translate": ({}, _NBEST),
}


class ParityError(RuntimeError):
    """An export that does not answer as the Translator does."""


class _Request(NamedTuple):
    signature: str
    sentences: list  # indices
    inputs: dict


def check_parity(
    translator,
    folder,
    runner,
    signatures,
    sentences=None,
    batch_sizes=(1, 32),
    python=sys.executable,
):
    """Counts the sentences that an export decodes as the Translator does.

    Args:
        translator: `Translator`.
        folder: the exported folder.
        runner: "onnx" or "saved_model".
        signatures: list of names of signatures.
        sentences: list of str to translate; by default those of
            `example_sentences`.
        batch_sizes: list of int; a sentence counts as equal if it is in
            every batch size.
        python: the interpreter of the fresh process.

    Returns:
        Dict of signature to a dict of `equal` and `of`, numbers of sentences,
        and `score_difference`, the largest.

    Raises:
        ParityError: if names, types or axes differ from `SIGNATURES`, or the
            process fails. Unequal sentences are counted, not raised.
    """
    sentences = sentences or example_sentences(translator)
    requests = _plan(translator, signatures, sentences, batch_sizes)
    reply = _run(python, runner, folder, requests)
    for signature in signatures:
        _compare_interface(signature, reply["interface"][signature], runner)
    report = {
        signature: {
            "equal": 0,
            "of": len(sentences),
            "score_difference": 0.0,
        }
        for signature in signatures
    }
    unequal = {signature: set() for signature in signatures}
    for request, answer in zip(requests, reply["answers"], strict=True):
        wrong, difference = _compare(translator, request, answer)
        unequal[request.signature].update(wrong)
        figures = report[request.signature]
        figures["score_difference"] = max(
            figures["score_difference"], difference
        )
    for signature, wrong in unequal.items():
        report[signature]["equal"] = len(sentences) - len(wrong)
    return report


def require_parity(report, target):
    """Raises ParityError unless every sentence of a report is equal."""
    for signature, figures in report.items():
        if figures["equal"] < figures["of"]:
            raise ParityError(
                f"{target}: signature {signature!r} answers as the Translator "
                f"does for {figures['equal']} of {figures['of']} sentences; "
                "all are expected (tokens exactly, scores within "
                f"{SCORE_TOLERANCE}; largest difference of scores "
                f"{figures['score_difference']:.2g})"
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


def _plan(translator, signatures, sentences, batch_sizes):
    source = translator.tokenize_source(sentences)
    requests = []
    for signature in signatures:
        takes_text = SIGNATURES[signature].inputs[0].name == "text"
        for options in _OPTIONS[signature]:
            for size in batch_sizes:
                for start in range(0, len(sentences), size):
                    rows = list(range(len(sentences)))[start : start + size]
                    inputs = {
                        "text": [sentences[i] for i in rows],
                        "source_ids": translator.pad(
                            [source[i] for i in rows]
                        ).tolist(),
                    }
                    inputs.pop("source_ids" if takes_text else "text")
                    requests.append(
                        _Request(signature, rows, {**inputs, **options})
                    )
    return requests


def _run(python, runner, folder, requests):
    """Lets a process of its own, in a folder of its own, answer."""
    script = (_RUNNERS / f"run_{runner}.py").read_text("utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "run.py").write_text(script, "utf-8")
        (scratch / "requests.json").write_text(
            json.dumps([request._asdict() for request in requests]), "utf-8"
        )
        environment = {
            **os.environ,
            "PYTHONPATH": "",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        command = [
            str(python),
            "run.py",
            str(pathlib.Path(folder).absolute()),
            "requests.json",
            "answers.json",
        ]
        done = subprocess.run(
            command,
            cwd=scratch,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode:
            raise ParityError(
                f"{folder}: a fresh process cannot run the export:\n"
                f"{done.stderr.strip()[-4000:]}"
            )
        return json.loads((scratch / "answers.json").read_text("utf-8"))


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


def _compare(translator, request, answer):
    """Gives the sentences that differ and the largest score difference."""
    expected = _expected(translator, request)
    found = {
        argument.name: answer[argument.name]["value"]
        for argument in SIGNATURES[request.signature].outputs
    }
    scores = np.array(found.pop("scores"), "float64")
    expected_scores = np.array(expected.pop("scores"), "float64")
    if scores.shape != expected_scores.shape:
        return request.sentences, float("inf")
    # Minus infinity marks an empty slot: equal to itself, its difference nan.
    with np.errstate(invalid="ignore"):
        differences = np.where(
            scores == expected_scores, 0.0, np.abs(scores - expected_scores)
        )
        # Of scores beyond 10, float32 keeps no four places behind the point.
        differences /= np.maximum(1.0, np.abs(expected_scores) / 10)
    differences = differences.reshape(len(request.sentences), -1)
    differences = np.nan_to_num(differences, nan=np.inf).max(axis=1)
    wrong = [
        sentence
        for row, sentence in enumerate(request.sentences)
        if differences[row] > SCORE_TOLERANCE
        or any(found[name][row] != expected[name][row] for name in found)
    ]
    return wrong, float(differences.max())


def _expected(translator, request):
    inputs = dict(request.inputs)
    if request.signature == "translate":
        return _expected_texts(translator, inputs.pop("text"), inputs)
    source_ids = np.array(inputs.pop("source_ids"), "int32")
    function = getattr(translator.generator, request.signature)
    outputs = function(source_ids, **inputs)
    return {name: tensor.numpy().tolist() for name, tensor in outputs.items()}


def _expected_texts(translator, texts, options):
    rows = translator.hypotheses(texts, batch_size=len(texts), **options)
    slots = options.get("num_hypotheses", 1)
    empty = ("", float("-inf"))
    rows = [[(best.text, best.score) for best in row] for row in rows]
    rows = [[*row, *[empty] * (slots - len(row))] for row in rows]
    return {
        "text": [[text for text, _ in row] for row in rows],
        "scores": [[score for _, score in row] for row in rows],
    }
