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
import keras_transformer.layers
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
    "run_folder",
    "translator",
    "exporting",
    "plotting",
    "commands",
    "cli",
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


def test_search_knows_no_model_but_in_the_generator():
    models = {
        "keras_transformer.transformer",
        "keras_transformer.translator",
        "keras_transformer.Transformer",
        "keras_transformer.Translator",
    }
    paths = of_room("decoding")
    assert "generator.py" in [path.name for path in paths]
    for path in paths:
        if path.name != "generator.py":
            assert not [n for n in imports(path) if within(n, models)], path


@pytest.mark.parametrize("path", FILES, ids=identity)
def test_reading_order_is_import_order(path):
    if path == ROOT / "__init__.py":
        return
    place = READING_ORDER.index(room(path))
    later = {f"keras_transformer.{name}" for name in READING_ORDER[place + 1 :]}
    assert [n for n in imports(path) if within(n, later)] == []


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
