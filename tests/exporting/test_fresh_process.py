"""Exports run in a new process, moved, without this package."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from tests.support import exports

# First arguments: names of packages that must not be importable.
BLOCK = """
import json, pathlib, sys

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusal())
for name in sys.argv[1].split(","):
    try:
        __import__(name)
        sys.exit(f"{name} can be imported")
    except ModuleNotFoundError:
        pass
folder = pathlib.Path(sys.argv[2])
question = json.loads(pathlib.Path("question.json").read_text("utf-8"))

def reply(**answers):
    text = json.dumps({k: v.tolist() for k, v in answers.items()})
    pathlib.Path("answer.json").write_text(text, "utf-8")
"""

ONNX = """
import numpy as np
import onnxruntime

def ask(signature, **inputs):
    session = onnxruntime.InferenceSession(folder / f"{signature}.onnx")
    feed = {name: np.array(value, "int32") for name, value in inputs.items()}
    feed["source_ids"] = np.array(question["source_ids"], "int32")
    return session.run(["token_ids", "scores"], feed)

ids, scores = ask("beam", num_hypotheses=3)
drawn, _ = ask("sample", seed=question["seed"])
reply(token_ids=ids, scores=scores, drawn=drawn)
"""

IDS = """
import tensorflow as tf
assert "tensorflow_text" not in sys.modules
loaded = tf.saved_model.load(str(folder))
source_ids = tf.constant(question["source_ids"])
found = loaded.beam(source_ids, num_hypotheses=tf.constant(3))
drawn = loaded.sample(source_ids, tf.constant(question["seed"]))["token_ids"]
reply(
    token_ids=found["token_ids"].numpy(),
    scores=found["scores"].numpy(),
    drawn=drawn.numpy(),
)
"""

TEXT = """
import numpy as np
import tensorflow as tf
import tensorflow_text

def ask(folder):
    loaded = tf.saved_model.load(str(folder))
    found = loaded.translate(tf.constant(question["text"]))
    return loaded, np.array([t.decode() for t in found["text"].numpy()[:, 0]])

loaded, texts = ask(folder)
tf.saved_model.save(loaded, "again", dict(loaded.signatures))
again, texts_again = ask("again")
assert set(again.signatures) == set(loaded.signatures)
reply(texts=texts, texts_again=texts_again)
"""


@pytest.fixture
def run(tmp_path, exported):
    """Runs a script over a copy of an export, elsewhere, in isolation."""

    def ask(name, script, blocked, **question):
        moved = tmp_path / "mövéd here" / name
        shutil.copytree(exported[name], moved)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "question.json").write_text(json.dumps(question))
        done = subprocess.run(
            [sys.executable, "-I", "-c", BLOCK + script, blocked, moved],
            cwd=elsewhere,
            env={"PATH": os.environ["PATH"], "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads((elsewhere / "answer.json").read_text("utf-8"))

    return ask


@pytest.mark.parametrize(
    ("name", "script", "blocked"),
    [
        ("onnx", ONNX, "keras_transformer,tensorflow,keras,onnx"),
        ("of_ids", IDS, "keras_transformer,tensorflow_text,sentencepiece"),
    ],
)
def test_ids_need_nothing_but_the_runtime(
    name, script, blocked, run, translator, source_ids, asked
):
    seed = asked["sample"]["seed"]
    answer = run(
        name,
        script,
        blocked,
        source_ids=source_ids.tolist(),
        seed=seed.tolist(),
    )
    drawn = exports.generate(translator, "sample", source_ids, {"seed": seed})
    np.testing.assert_array_equal(answer["drawn"], drawn["token_ids"])
    expected = exports.generate(
        translator, "beam", source_ids, {"num_hypotheses": 3}
    )
    np.testing.assert_array_equal(answer["token_ids"], expected["token_ids"])
    np.testing.assert_allclose(answer["scores"], expected["scores"], atol=1e-4)


def test_text_needs_tensorflow_text_and_can_be_saved_again(run, translator):
    texts = exports.sentences()[15:]
    answer = run("saved_model", TEXT, "keras_transformer", text=texts)
    assert answer["texts"] == translator.translate(texts)
    assert answer["texts_again"] == answer["texts"]


@pytest.mark.parametrize("name", ["saved_model", "of_ids", "onnx", "litert"])
def test_no_file_tells_where_it_was_made(name, exported):
    import keras

    places = {
        str(pathlib.Path.cwd()),
        str(pathlib.Path(__file__).parents[2]),
        str(pathlib.Path.home()),
        str(exported[name].parent),
        tempfile.gettempdir() + "/",
        str(pathlib.Path(keras.__file__).parents[1]),
        "site-packages",
        "keras_transformer/",
    }
    files = [file for file in exported[name].rglob("*") if file.is_file()]
    assert len(files) >= 4
    for file in files:
        data = file.read_bytes()
        for place in places - {"/"}:
            assert place.encode() not in data, f"{file.name} holds {place}"
