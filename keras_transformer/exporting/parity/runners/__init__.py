"""Programs that run an export without this package; read, never imported.

What is different about each stands here, so that what compares knows none.
"""

import pathlib
import sys
from typing import NamedTuple

from keras_transformer.decoding import SIGNATURES
from keras_transformer.decoding.penalties import POWER
from keras_transformer.exporting.parity.questions import Question


class Runner(NamedTuple):
    """A program that answers for an export, and what it can be asked.

    name: str.
    command: tuple of str, the program and its first arguments.
    reads: str, the format of the export.
    not_asked: dict of the signatures that it cannot be asked to the reasons.
    questions: tuple of `Question`, if it knows other options than the contract.
    pieces: range, how many a sentence may have; None for any number.
    cuts_at_nul: bool, whether its texts end before a NUL.
    names_axes: bool, whether its axes have the names of the contract.
    packages: tuple of str for pip, what an environment of its own needs.
    """

    name: str
    command: tuple
    reads: str
    not_asked: dict = {}
    questions: tuple | None = None
    pieces: range | None = None
    cuts_at_nul: bool = False
    names_axes: bool = False
    packages: tuple = ()

    @property
    def signatures(self):
        """Names of those that it can be asked, a tuple."""
        return tuple(name for name in SIGNATURES if name not in self.not_asked)

    def askable(self, translator, sentences):
        """Gives a list of the sentences that it can be asked."""
        if self.cuts_at_nul:
            sentences = [text for text in sentences if "\0" not in text]
        if self.pieces is None:
            return list(sentences)
        rows = translator.source_tokenizer.tokenize(sentences)
        return [
            text
            for text, row in zip(sentences, rows, strict=True)
            if len(row) in self.pieces
        ]


def _runner(name, reads=None, **quirks):
    """A runner of this folder; by default it reads the format of its name."""
    # Python looks for modules where a script really is, so it is read.
    script = pathlib.Path(__file__).with_name(f"run_{name}.py")
    command = (sys.executable, "-c", script.read_text("utf-8"))
    return Runner(name, command, reads or name, **quirks)


# CTranslate2 has this form of the penalty and this rule of stopping; without a
# penalty it stops once the best candidate of a step is an end, which finds the
# best hypothesis, as the exact rule does.
_QUESTIONS = (
    Question("greedy", {"max_length": 60}),
    Question("greedy", {"max_length": 7}),
    *(
        Question(
            "beam",
            {
                "beam_size": width,
                "num_hypotheses": slots,
                "length_penalty": alpha,
                "length_penalty_form": POWER,
                "early_stopping": int(alpha != 0),
                "max_length": 60,
            },
        )
        for width, slots, alpha in ((4, 1, 0.0), (4, 4, 0.6), (5, 5, 1.0))
    ),
)
_RUNNERS = (
    _runner("saved_model", packages=("tensorflow-text>=2.21,<3",)),
    _runner(
        "onnx",
        cuts_at_nul=True,  # As onnxruntime-extensions does.
        names_axes=True,
        packages=("onnxruntime>=1.32,<2", "numpy"),
    ),
    _runner(
        "openvino",
        reads="onnx",
        not_asked={
            "sample": "it divides integers as floats, so its noise differs",
            "translate": "it has no such operators",
        },
        packages=("openvino>=2026.4,<2027", "numpy"),
    ),
    _runner(
        "litert",
        not_asked={"translate": "it has no such operators"},
        packages=("ai-edge-litert>=2.1,<3", "numpy"),
    ),
    _runner(
        "ctranslate2",
        not_asked={
            "sample": "its noise is its own",
            "score": "its score_batch is another call",
            "align": "it keeps no attention of such a model",
            "translate": "it takes pieces, not texts",
        },
        questions=_QUESTIONS,
        pieces=range(1, 1024),  # Blank lines are for a client.
        packages=("ctranslate2>=4.8,<5", "sentencepiece>=0.2,<0.3"),
    ),
)
RUNNERS = {runner.name: runner for runner in _RUNNERS}
