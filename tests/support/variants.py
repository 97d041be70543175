"""RMSNorm and rotary positions as docs/variants.md has a user write them."""

import doctest
import pathlib

_PAGE = pathlib.Path(__file__).parents[2] / "docs/variants.md"


def _functions():
    names = {}
    for example in doctest.DocTestParser().get_examples(_PAGE.read_text()):
        exec(example.source, names)
        if "rotary" in names:
            return names["rms_norm"], names["rotary"]


rms_norm, rotary = _functions()
VARIANT = {"make_norm": rms_norm, "rotate": rotary, "d_k": 6}
