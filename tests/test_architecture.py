"""Reading order is import order, and what is public can be found."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keras_transformer
import keras_transformer.decoding
import keras_transformer.exporting
import keras_transformer.layers
import keras_transformer.text
import keras_transformer.training

ROOT = Path(keras_transformer.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MOST_LINES = 250  # Of code; docstrings may take the room that they need.

# What a room may import, where it is told in full.
ALLOWED = {
    "special_ids": set(),
    "layers": {
        "keras",
        "numpy",
        "dataclasses",
        "typing",
        "keras_transformer.layers",
    },
    "transformer": {
        "keras",
        "keras_transformer.layers",
        "keras_transformer.special_ids",
    },
    "training": {
        "keras",
        "numpy",
        "contextlib",
        "logging",
        "math",
        "pathlib",
        "sacrebleu",
        "shutil",
        "time",
        "keras_transformer.folders",
        "keras_transformer.layers.arguments",
        "keras_transformer.training",
    },
}
# Rooms in reading order: each may import those before it.
READING_ORDER = [
    "version",
    "folders",
    "special_ids",
    "layers",
    "transformer",
    "training",
    "text",
    "decoding",
    "padded_batches",
    "run_folder",
    "translator",
    "exporting",
    "plotting",
    "commands",
    "cli",
]

# Modules of exporting in reading order; each may import those of lines before.
EXPORTING_ORDER = [
    ["parity.answers", "parity.process", "parity.questions"],
    ["parity.runners"],
    ["parity.check"],
    ["parity"],
    ["precision", "metadata", "tokenizer_json"],
    ["frame"],
    ["saved_model"],
    ["litert"],
    ["onnx.graph"],
    ["onnx.loops", "onnx.simplify", "onnx.small", "onnx.files", "onnx.text"],
    ["onnx.convert"],
    ["onnx"],
    ["onnx_export"],
    ["ctranslate2", "ctranslate2.weights"],
    ["ctranslate2.model"],
    ["__init__"],
]


def room(path):
    """The package or module right below keras_transformer."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """Every name a file imports, inside functions too, in full."""
    names = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names += [f"{module}.{alias.name}" for alias in node.names]
    return names


def within(name, modules):
    """Whether a name is one of the modules or lies in one."""
    return any(
        name == module or name.startswith(module + ".") for module in modules
    )


def of_room(*rooms):
    return [path for path in FILES if room(path) in rooms]


def identity(path):
    return str(path.relative_to(ROOT))


def test_imports_are_found_wherever_they_stand(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        "import a.b as c\nfrom d import e\ndef f():\n    from . import g\n"
    )
    assert imports(path) == ["a.b", "d.e", "..g"]
    assert within("d.e", {"d"}) and not within("de", {"d"})


@pytest.mark.parametrize("path", of_room(*ALLOWED), ids=identity)
def test_room_imports_only_what_it_may(path):
    allowed = ALLOWED[room(path)]
    assert [n for n in imports(path) if not within(n, allowed)] == []


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_nothing_imports_scripts_or_private_parts(path):
    forbidden = {"recipes", "export", "benchmarks", "tests", "keras.src"}
    names = imports(path)
    assert [n for n in names if within(n, forbidden)] == []
    assert [n for n in names if n.startswith(".")] == []
    assert not re.search(r"\bkeras\.src\b", path.read_text("utf-8"))


def test_training_and_decoding_never_see_each_other():
    for path in of_room("training"):
        assert not any("keras_transformer.decoding" in n for n in imports(path))
    for path in of_room("decoding"):
        assert not any("keras_transformer.training" in n for n in imports(path))


def knows_a_model(path):
    """Whether a file imports Keras or the layers, or names a Transformer."""
    names = {
        getattr(node, "id", None) or getattr(node, "arg", None)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.Name, ast.arg))
    }
    models = {
        "keras",
        "keras_transformer.layers",
        "keras_transformer.transformer",
    }
    return bool({"transformer", "model"} & names) or any(
        within(name, models) for name in imports(path)
    )


def test_two_files_of_decoding_know_a_model_and_no_search_does():
    knowing = {p.name for p in of_room("decoding") if knows_a_model(p)}
    assert knowing == {"transformer_step.py", "generator.py"}


# In the order in which decoding is read: each may import those before it.
DECODING_ORDER = [
    "options",
    "option_checks",
    "signatures",
    "search_state",
    "loop",
    "logits",
    "prefix",
    "constraints",
    "one_hypothesis",
    "greedy",
    "noise",
    "sampling",
    "penalties",
    "beam_rules",
    "beam",
    "transformer_step",
    "generator",
]


@pytest.mark.parametrize("path", of_room("decoding"), ids=identity)
def test_decoding_is_read_in_the_order_of_its_imports(path):
    if path.stem == "__init__":
        return
    place = DECODING_ORDER.index(path.stem)
    later = {
        f"keras_transformer.decoding.{name}"
        for name in DECODING_ORDER[place + 1 :]
    }
    assert [n for n in imports(path) if within(n, later)] == []


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_reading_order_is_import_order(path):
    if path == ROOT / "__init__.py":
        return
    place = READING_ORDER.index(room(path))
    later = {f"keras_transformer.{name}" for name in READING_ORDER[place + 1 :]}
    assert [n for n in imports(path) if within(n, later)] == []


def test_readme_tells_the_reading_order():
    readme = (ROOT.parent / "README.md").read_text("utf-8")
    _, _, section = readme.partition("\n## Reading order\n")
    rows = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", section, re.M)
    assert len(rows) >= 8
    assert rows == [name for name in READING_ORDER if name in rows]


def module_of_exporting(name):
    """The longest name in `EXPORTING_ORDER` that an import lies in."""
    name = name.removeprefix("keras_transformer.exporting.")
    modules = [each for line in EXPORTING_ORDER for each in line]
    return max((m for m in modules if within(name, {m})), key=len)


def test_reading_order_is_import_order_within_exporting():
    found = set()
    for path in of_room("exporting"):
        parts = path.relative_to(ROOT / "exporting").with_suffix("").parts
        if parts[:2] == ("parity", "runners") and parts[-1] != "__init__":
            continue  # Read, never imported.
        if len(parts) > 1 and parts[-1] == "__init__":
            parts = parts[:-1]
        module = ".".join(parts)
        found.add(module)
        [place] = [i for i, x in enumerate(EXPORTING_ORDER) if module in x]
        before = [each for line in EXPORTING_ORDER[:place] for each in line]
        for name in imports(path):
            if within(name, {"keras_transformer.exporting"}):
                assert module_of_exporting(name) in before, (module, name)
    assert found == {each for line in EXPORTING_ORDER for each in line}


def test_onnx_is_imported_at_the_top_in_its_room_and_nowhere_else():
    """An installation may lack it."""
    modules = {"onnx", "tf2onnx", "keras_transformer.exporting.onnx"}
    within_room = [p for p in FILES if p.parent == ROOT / "exporting" / "onnx"]
    assert len(within_room) == 8
    for path in FILES:
        top = [
            name.name if isinstance(node, ast.Import) else node.module
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for name in node.names
        ]
        if path in within_room:
            everywhere = imports(path)
            assert len(everywhere) == len(top), path
            assert any(within(name, modules) for name in top), path
        else:
            assert not any(within(name, modules) for name in top), path


def test_reading_order_of_the_layers_is_import_order():
    """The docstring of the package lists them, one a line."""
    listed = re.findall(r"^    (\w+)  ", keras_transformer.layers.__doc__, re.M)
    paths = {path.stem: path for path in of_room("layers")}
    assert sorted(listed) == sorted(paths.keys() - {"__init__"})
    for place, name in enumerate(listed):
        later = {f"keras_transformer.layers.{n}" for n in listed[place:]}
        names = imports(paths[name])
        assert [n for n in names if within(n, later)] == [], name
        # By file, not through the package, so that the order is seen.
        files = {f"keras_transformer.layers.{n}" for n in listed}
        ours = [n for n in names if within(n, {"keras_transformer.layers"})]
        assert [n for n in ours if not within(n, files)] == [], name


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_file_is_short_enough_to_read(path):
    text = path.read_text("utf-8")
    docstrings = [
        node.body[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and ast.get_docstring(node)
    ]
    spent = sum(node.end_lineno - node.lineno + 1 for node in docstrings)
    assert len(text.splitlines()) - spent <= MOST_LINES


# === Names ===


def test_public_names_are_sorted_and_resolve():
    names = keras_transformer.__all__
    assert names == sorted(set(names))
    assert dir(keras_transformer) == names
    for name in names:
        assert getattr(keras_transformer, name) is not None


def test_unknown_name_is_an_attribute_error():
    message = "module 'keras_transformer' has no attribute 'Transformers'"
    with pytest.raises(AttributeError, match=f"^{message}$"):
        _ = keras_transformer.Transformers


@pytest.mark.parametrize(
    "module",
    [
        keras_transformer,
        keras_transformer.layers,
        keras_transformer.training,
        keras_transformer.text,
        keras_transformer.decoding,
        keras_transformer.exporting,
    ],
    ids=lambda module: module.__name__,
)
def test_everything_public_says_what_it_is_for(module):
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert (vars(value).get("__doc__") or value.__doc__ or "").strip()
            assert value.__doc__.splitlines()[0].endswith("."), name


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_every_file_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


IMPORT = """
import tests.support.no_tensorflow
import sys
import keras
import keras_transformer

assert keras.backend.backend() == "jax"
keras_transformer.Transformer(
    11, num_layers=1, d_model=8, num_heads=2, d_ff=16)
corpus = keras_transformer.ParallelCorpus(["one two"], ["eins zwei"])
tokenizer = keras_transformer.Tokenizer.train_from_lines(
    [*corpus.source, *corpus.target], 274)
assert tokenizer.detokenize(tokenizer.tokenize(corpus.source)) == ["one two"]
assert len(keras_transformer.BatchPlan(corpus, tokenizer)) == 1
assert not [n for n in sys.modules if n.split(".")[0] == "tensorflow"]
try:
    keras_transformer.beam_search
except ImportError as error:
    print(error)
"""


def test_package_works_on_jax_without_tensorflow():
    result = subprocess.run(
        [sys.executable, "-c", IMPORT],
        cwd=ROOT.parent,
        env={**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "No module named 'tensorflow'\n"
