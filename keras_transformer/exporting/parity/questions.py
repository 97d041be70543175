"""What an export is asked, and what the Translator answers.

A question is a signature with options. It is put for all sentences, to the
export in batches of several sizes, shuffled and with more padding than they
need, and to the Translator at once.
"""

import random
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding import SIGNATURES
from keras_transformer.decoding.options import BY_NAME, DEFAULTS

_SPARE_COLUMNS = 3


class Question(NamedTuple):
    """What is asked for every sentence.

    signature: its name.
    options: dict of the options that are given.
    """

    signature: str
    options: dict


class Request(NamedTuple):
    """A question for one batch.

    question: `Question`.
    sentences: list of int, the indices of the sentences.
    inputs: dict of the rows of these sentences, as JSON holds them.
    """

    question: Question
    sentences: list
    inputs: dict


def questions_for(signatures, every_option=False):
    """Lists the questions: defaults, each option alone, all options at once.

    Args:
        signatures: list of names.
        every_option: bool, whether each option is asked by itself too.

    Returns:
        A list of `Question`.
    """
    questions = []
    for signature in signatures:
        others = {
            argument.name: BY_NAME[argument.name].trial
            for argument in SIGNATURES[signature].inputs
            if argument.default is not None
        }
        alone = [{name: value} for name, value in others.items()]
        if signature == "translate":
            # It is `beam`, which is asked. Pieces at random may not be a
            # text, so there is no prefix.
            alone = []
            others["target_prefix"] = DEFAULTS["target_prefix"]
        every = [{}, *(alone if every_option else [])]
        every += [others] if others else []
        questions += [Question(signature, options) for options in every]
    return questions


class Questioner:
    """Puts questions about sentences, and keeps what the Translator answers.

    Args:
        translator: `Translator`.
        sentences: list of str.
    """

    def __init__(self, translator, sentences):
        self.translator = translator
        self.count = len(sentences)
        self._answers = {}
        greedy = translator.hypotheses(sentences, "greedy")
        eos = [translator.transformer.eos_id]
        self._rows = {
            "text": sentences,
            "source_ids": translator.tokenize_source(sentences),
            "target_ids": [best.token_ids or eos for best, *_ in greedy],
            "seed": [[-7, i] for i in range(len(sentences))],
        }

    def requests(self, question, batch_size):
        """Asks in batches: gives a list of `Request`."""
        order = list(range(self.count))
        random.Random(batch_size).shuffle(order)
        chunks = [
            order[start : start + batch_size]
            for start in range(0, len(order), batch_size)
        ]
        return [
            Request(question, chunk, self._inputs(question.signature, chunk))
            for chunk in chunks
        ]

    def expected(self, question):
        """Asks the Translator: gives a dict of output name to its rows."""
        key = repr((question.signature, sorted(question.options.items())))
        if key not in self._answers:
            self._answers[key] = self._ask(question)
        return self._answers[key]

    def _ask(self, question):
        signature, options = question
        inputs = self._inputs(signature, range(self.count))
        if signature == "translate":
            return self._expected_texts(inputs["text"], dict(options))
        given = {**inputs, **options}
        tensors = getattr(self.translator.generator, signature)(
            **{
                argument.name: np.array(given[argument.name], argument.dtype)
                for argument in SIGNATURES[signature].inputs
                if argument.name in given
            }
        )
        return {name: value.numpy().tolist() for name, value in tensors.items()}

    def _inputs(self, signature, sentences):
        model = self.translator.transformer
        inputs = {}
        for argument in SIGNATURES[signature].inputs:
            name = argument.name
            if name not in self._rows:
                continue
            rows = [self._rows[name][i] for i in sentences]
            if name.endswith("_ids"):
                rows = np.pad(
                    self.translator.pad(rows),
                    ((0, 0), (0, _SPARE_COLUMNS)),
                    constant_values=model.pad_id,
                ).tolist()
            inputs[name] = rows
        return inputs

    def _expected_texts(self, texts, options):
        options.pop("target_prefix", None)
        rows = self.translator.hypotheses(
            texts, batch_size=len(texts), **options
        )
        slots = options.get("num_hypotheses", 1)
        rows = [[(best.text, best.score) for best in row] for row in rows]
        empty = ("", float("-inf"))
        rows = [[*row, *[empty] * (slots - len(row))] for row in rows]
        return {
            "text": [[text for text, _ in row] for row in rows],
            "scores": [[score for _, score in row] for row in rows],
        }
