"""The examples of the documentation run, and its map of the code is right."""

import ast
import doctest
import pathlib
import re

import keras
import pytest

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md"))
MAP = "architecture.md"  # It tells where things are, and runs nothing.


@pytest.fixture
def registry():
    """Forgets what an example registers, for its names end with it."""
    registered = keras.saving.get_custom_objects()
    before = dict(registered)
    yield
    registered.clear()
    registered.update(before)


@pytest.mark.parametrize("name", [page for page in PAGES if page != MAP])
def test_the_examples_print_what_they_say(name, monkeypatch, registry):
    monkeypatch.chdir(DOCS.parent)
    failed, attempted = doctest.testfile(
        str(DOCS / name), module_relative=False, encoding="utf-8"
    )
    assert attempted > 5
    assert failed == 0


def definitions(path):
    """Names that a file defines at its top, and those of classes in it."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            found |= {getattr(each, "id", None) for each in node.targets}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{each.name}"
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            }
    return found


def test_the_map_of_the_code_names_what_is_there():
    """Each row of a table: what happens, files, and names in those files."""
    text = (DOCS / MAP).read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    seen = 0
    for row in rows:
        cells = [re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[2:4]]
        if not cells[0]:
            continue  # The head of a table.
        known = set()
        for name in cells[0]:
            paths = (ROOT / "keras_transformer" / name, ROOT / name)
            [path] = [each for each in paths if each.is_file()]
            known |= definitions(path) if path.suffix == ".py" else set()
        assert set(cells[1]) <= known, row
        seen += 1
    assert seen > 30


def test_the_map_of_the_code_is_a_page():
    assert len((DOCS / MAP).read_text("utf-8").splitlines()) <= 130
