"""Spoken English and its written form: pairs of lines from a seeded grammar.

    the meeting is on the twenty third of march two thousand and four
    the meeting is on 2004-03-23

A line holds one phrase or two, each of one of the templates in
`spoken_amounts.py` and `spoken_dates.py`, among plain words that stay as they
are. A spoken line has one written form only. Whole ranges of numbers and whole
pairs of templates are kept out of training: `held_out` is the rule. To see
how many lines there are, and some of each split:

    python recipes/spoken_forms.py
"""

import bisect

from spoken_amounts import AMOUNTS
from spoken_dates import DATES
from spoken_numbers import Draw

TEMPLATES = {**AMOUNTS, **DATES}
NAMES = list(TEMPLATES)
SPLITS = ("train", "valid", "test")

# What training never says, whole ranges (first, last) by kind of number; the
# kinds are those of `spoken_numbers.Phrase`. Each word and each digit in
# these ranges occurs in training at the same place within other numbers.
HELD_OUT = {
    "valid": {
        "number": (
            (53, 54),
            (160, 169),
            (680, 689),
            (3_400, 3_499),
            (21_000, 21_999),
            (520_000, 529_999),
        ),
        "year": ((1640, 1649), (1871, 1876), (2052, 2056)),
        "day": ((214, 219), (503, 508), (822, 826), (1120, 1124)),
        "minute": ((215, 229), (940, 954), (1605, 1614), (2230, 2239)),
        "part": ((603, 603), (702, 702), (906, 907)),
        "start": ((260, 269), (700, 709), (910, 924)),
    },
    "test": {
        "number": (
            (46, 48),
            (270, 279),
            (530, 549),
            (7_200, 7_299),
            (60_000, 63_999),
            (340_000, 349_999),
            (811_000, 818_999),
        ),
        "year": ((1580, 1589), (1931, 1938), (2071, 2079)),
        "day": ((112, 117), (320, 324), (705, 709), (925, 928)),
        "minute": ((440, 454), (1110, 1119), (1305, 1319), (1915, 1929)),
        "part": ((503, 503), (805, 806), (1007, 1007)),
        "start": ((80, 89), (470, 479), (630, 644)),
    },
}

# Two templates never share a training line, in either order, when their
# places in TEMPLATES add up to this number, modulo 10.
HELD_OUT_PAIRS = {"valid": 3, "test": 6}


def _edges(kind):
    """Returns sorted range starts, their ends, and the split of each."""
    ranges = [
        (first, last, split)
        for split, kinds in HELD_OUT.items()
        for first, last in kinds[kind]
    ]
    return tuple(zip(*sorted(ranges), strict=True))


EDGES = {kind: _edges(kind) for kind in HELD_OUT["test"]}


def held_out(names, marks=()):
    """Tells which split a line is kept for.

    Args:
        names: the names of the line's one or two templates.
        marks: the `marks` of all phrases of the line.

    Returns:
        "test" if the pair of templates or any number is kept for the test;
        otherwise "valid" if any is kept for validation; otherwise None: the
        line belongs to training.
    """
    found = set()
    if len(names) == 2:
        total = sum(NAMES.index(name) for name in names) % 10
        found.update(
            split for split in HELD_OUT if HELD_OUT_PAIRS[split] == total
        )
    for kind, number in marks:
        starts, ends, splits = EDGES[kind]
        place = bisect.bisect_right(starts, number) - 1
        if place >= 0 and number <= ends[place]:
            found.add(splits[place])
    return "test" if "test" in found else "valid" if found else None


def _draw_names(draw, split):
    """Draws one or two templates whose pair `split` may show."""
    wanted = None if split == "train" or draw.chance() else split
    while True:
        count = 2 if wanted or draw.chance() else 1
        names = [draw.one_of(NAMES) for _ in range(count)]
        if held_out(names) == wanted:
            return names


def draw_line(draw, split):
    """Draws one line of a split.

    Returns:
        spoken line, written line, template names, marks.
    """
    names = _draw_names(draw, split)
    kept_for = None if split == "train" else split
    while True:
        phrases = [TEMPLATES[name].draw(draw) for name in names]
        marks = sum((phrase.marks for phrase in phrases), ())
        if held_out(names, marks) == kept_for:
            break
    spoken, written = [], []
    for name, phrase in zip(names, phrases, strict=True):
        contexts = TEMPLATES[name].contexts
        if spoken and contexts[0] == "{}":
            # A plain word must part two phrases, or "two thousand" and "four
            # thirty a m" could be one number.
            contexts = contexts[1:]
        context = draw.one_of(contexts)
        spoken.append(context.replace("{}", phrase.spoken))
        written.append(context.replace("{}", phrase.written))
    return " ".join(spoken), " ".join(written), names, marks


def generate(seed, count, split="train"):
    """Yields `count` pairs (spoken, written) of a split.

    The same seed, count and split give the same pairs. "valid" and "test"
    hold only lines with something that training never shows: half of them
    through their pair of templates, the others through a number.

    Raises:
        ValueError: if `split` is none of "train", "valid" and "test".
    """
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}, expected one of {SPLITS}")
    draw = Draw(f"{split} {seed}")
    if split != "train":
        draw.preferred = HELD_OUT[split]["number"]
    for _ in range(count):
        spoken, written, _, _ = draw_line(draw, split)
        yield spoken, written


def count_lines():
    """Returns a lower bound for the number of different spoken lines.

    Lines with one phrase alone are counted; those with two are far more.
    """
    return sum(
        template.count * len(template.contexts)
        for template in TEMPLATES.values()
    )


def main():
    print(f"{len(TEMPLATES)} templates, over {count_lines():,} lines")
    for split in SPLITS:
        for spoken, written in generate(1, 8, split):
            print(f"{split}\t{spoken}\t{written}")


if __name__ == "__main__":
    main()
