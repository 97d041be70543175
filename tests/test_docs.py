"""The examples of the documentation run as they stand."""

import doctest
import pathlib

import pytest

DOCS = pathlib.Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("name", sorted(p.name for p in DOCS.glob("*.md")))
def test_the_examples_print_what_they_say(name, monkeypatch):
    monkeypatch.chdir(DOCS.parent)
    failed, attempted = doctest.testfile(
        str(DOCS / name), module_relative=False, encoding="utf-8"
    )
    assert attempted > 5
    assert failed == 0
