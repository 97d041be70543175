"""A shared option is added in two files, and everything else follows.

The package is copied, an option is written into the table and into the
constraints, and a process of its own looks for it in all that is made of them.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import keras_transformer

PACKAGE = pathlib.Path(keras_transformer.__file__).parent

# In the table: before that line, these.
OPTION = (
    "decoding/options.py",
    '    Option(\n        "target_prefix",\n',
    """    Option(
        "eos_bonus",
        STRATEGIES,
        default=0.0,
        range=(-50.0, 50.0),
        trial=1.5,
        help="added to the logit of the end, default {default}: off",
        rule="added to the logit of eos",
    ),
""",
)
FIELD = (
    "decoding/constraints.py",
    "    target_prefix: object = None\n",
    '    eos_bonus: object = DEFAULTS["eos_bonus"]\n',
)
# What it does, and when.
EFFECT = (
    "decoding/constraints.py",
    "        logits = penalize_repetition(\n            logits,",
    """        is_eos = tf.range(tf.shape(logits)[1]) == self._eos_id
        bonus = tf.cast(self.constraints.eos_bonus, tf.float32)
        logits += tf.where(is_eos, bonus, 0.0)
""",
)
WHEN = (
    "decoding/constraints.py",
    "        self.forced = forced_ids(",
    """        self._eos_id = eos_id
        self._looks_back |= constraints.eos_bonus != 0.0
""",
)

LOOK = r"""
import argparse, contextlib, io, json, pathlib
import numpy as np
import keras_transformer
from keras_transformer import Tokenizer, Transformer, Translator, cli
from keras_transformer.decoding import SIGNATURES
from keras_transformer.exporting.metadata import write_metadata
from keras_transformer.exporting.parity.questions import questions_for

tokenizer = Tokenizer.train_from_lines(["one two three"] * 9, 270)
model = Transformer(270, num_layers=1, d_model=8, num_heads=2, d_ff=16)
translator = Translator(model, tokenizer)
lengths, refusals = {}, {}
for strategy in ("greedy", "beam", "sample"):
    lengths[strategy] = []
    for bonus in (0.0, -50.0, 50.0, 1e9):
        ids = np.array([[5, 6, 2]], "int32")
        given = {"eos_bonus": np.float32(bonus), "max_length": np.int32(7)}
        if strategy == "sample":
            given["seed"] = np.array([[7, 0]], "int32")
        found = getattr(translator.generator, strategy)(ids, **given)
        lengths[strategy].append(int(np.max(found["lengths"])))
    try:
        translator.translate(["one"], strategy, eos_bonus=51.0)
    except ValueError as error:
        refusals[strategy] = str(error)
helps = {}
for command in ("translate", "evaluate"):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        with contextlib.suppress(SystemExit):
            cli.main([command, "--help"])
    helps[command] = " ".join(printed.getvalue().split())
write_metadata(translator, pathlib.Path("export"), SIGNATURES)
metadata = json.loads(pathlib.Path("export/metadata.json").read_text())
print(json.dumps({
    "package": keras_transformer.__file__,
    "lengths": lengths,
    "refusals": refusals,
    "helps": helps,
    "inputs": {
        name: [a.name for a in signature.inputs].count("eos_bonus")
        for name, signature in SIGNATURES.items()
    },
    "rule": metadata["rules"]["eos_bonus"],
    "range": metadata["ranges"]["eos_bonus"],
    "asked": {
        name: [q.options for q in questions_for([name], every_option=True)]
        for name in ("greedy", "beam", "sample", "translate")
    },
}))
"""


def insert(package, change):
    name, place, lines = change
    text = (package / name).read_text("utf-8")
    assert text.count(place) == 1, f"{place!r} in {name}"
    (package / name).write_text(text.replace(place, lines + place), "utf-8")


def test_an_option_that_is_added_in_two_files_is_everywhere(tmp_path):
    copy = tmp_path / "keras_transformer"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for change in (OPTION, FIELD, EFFECT, WHEN):
        insert(copy, change)
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["package"] == str(copy / "__init__.py")
    # The mechanism, in all searches; and out of range counts as the end of it.
    for strategy, lengths in found["lengths"].items():
        assert lengths[1:] == [7, 1, 1], strategy
    # Python's checks.
    message = "eos_bonus must be a number from -50 to 50, got eos_bonus=51.0"
    assert set(found["refusals"]) == {"greedy", "beam", "sample"}
    assert set(found["refusals"].values()) == {message}
    # The command's flags.
    for text in found["helps"].values():
        assert (
            "--eos-bonus X added to the logit of the end, default 0: off"
            in text
        )
    # The inputs of graphs, what clients are told, what exports are asked.
    decode = {"greedy", "beam", "sample", "translate"}
    assert found["inputs"] == {
        name: int(name in decode)
        for name in ("greedy", "beam", "sample", "score", "align", "translate")
    }
    assert found["rule"] == "added to the logit of eos"
    assert found["range"] == [-50.0, 50.0]
    for name, asked in found["asked"].items():
        assert ({"eos_bonus": 1.5} in asked) == (name != "translate")
        assert asked[-1]["eos_bonus"] == 1.5
