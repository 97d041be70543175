"""English words for numbers, and random numbers that show every structure.

`spoken_amounts.py` and `spoken_dates.py` build phrases from these.
"""

import random
from typing import NamedTuple

MILLION = 1_000_000
DIGITS = "zero one two three four five six seven eight nine".split()
TEENS = (
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
UNDER_HUNDRED = DIGITS + TEENS
UNDER_HUNDRED += [
    ten if unit == 0 else f"{ten} {DIGITS[unit]}"
    for ten in TENS
    for unit in range(10)
]


def _under_thousand(number, joiner):
    hundreds, rest = divmod(number, 100)
    if not hundreds:
        return UNDER_HUNDRED[rest]
    words = f"{DIGITS[hundreds]} hundred"
    return f"{words}{joiner}{UNDER_HUNDRED[rest]}" if rest else words


WITH_AND = [_under_thousand(number, " and ") for number in range(1000)]
WITHOUT_AND = [_under_thousand(number, " ") for number in range(1000)]


def cardinal(number, with_and=True):
    """Returns the words for 0 to a million, as said with or without "and".

    >>> cardinal(700_004)
    'seven hundred thousand and four'
    >>> cardinal(1_250, with_and=False)
    'one thousand two hundred fifty'
    """
    if number == MILLION:
        return "one million"
    words = WITH_AND if with_and else WITHOUT_AND
    if number < 1000:
        return words[number]
    thousands, rest = divmod(number, 1000)
    if rest == 0:
        return f"{words[thousands]} thousand"
    joiner = "thousand and" if with_and and rest < 100 else "thousand"
    return f"{words[thousands]} {joiner} {words[rest]}"


def ordinal(number, with_and=True):
    """Returns the words for 1st to a millionth.

    >>> ordinal(23), ordinal(140)
    ('twenty third', 'one hundred and fortieth')
    """
    start, space, last = cardinal(number, with_and).rpartition(" ")
    if last in IRREGULAR_ORDINALS:
        last = IRREGULAR_ORDINALS[last]
    elif last.endswith("y"):
        last = f"{last[:-1]}ieth"
    else:
        last = f"{last}th"
    return start + space + last


def ordinal_suffix(number):
    """Returns the two letters behind a written ordinal: 23 gives "rd"."""
    if number // 10 % 10 == 1:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def year(number, in_thousands=False, with_and=True):
    """Returns the words for a year between 1100 and 2099.

    The years 2000 to 2009 are always said in thousands, those before 2000
    never, and the later ones either way.

    >>> year(1904), year(2014), year(2014, in_thousands=True)
    ('nineteen oh four', 'twenty fourteen', 'two thousand and fourteen')
    """
    century, rest = divmod(number, 100)
    if century == 20 and (in_thousands or rest < 10):
        return cardinal(number, with_and)
    if rest == 0:
        return f"{UNDER_HUNDRED[century]} hundred"
    joiner = " oh " if rest < 10 else " "
    return UNDER_HUNDRED[century] + joiner + UNDER_HUNDRED[rest]


# Each is equally likely, so that 700,004 and 15,000 are as frequent as
# numbers without a zero: drawn evenly from the range they would be rare.
STRUCTURES = (
    tuple(range(1, 10)),
    tuple(range(10, 20)),
    tuple(range(20, 100, 10)),
    tuple(number for number in range(21, 100) if number % 10),
    tuple(range(100, 1000, 100)),
    tuple(number for number in range(100, 1000) if 0 < number % 100 < 10),
    tuple(number for number in range(110, 1000) if 10 <= number % 100 < 20),
    tuple(number for number in range(120, 1000) if number % 100 >= 20),
)


class Draw(random.Random):
    """Random choices for the templates.

    `preferred` holds ranges (low, high) from which `number` takes every
    second number, where they fit: lines for validation and test would
    otherwise be rare among all lines.
    """

    preferred = ()

    def below(self, limit):
        return int(self.random() * limit)

    def one_of(self, options):
        return options[int(self.random() * len(options))]

    def chance(self, probability=0.5):
        return self.random() < probability

    def number(self, limit):
        """Returns a number from 1 to `limit`, at most a million."""
        if self.preferred and self.chance():
            low, high = self.one_of(self.preferred)
            if high <= limit:
                return low + self.below(high - low + 1)
        if limit == MILLION and self.chance(0.003):
            return MILLION
        structures = STRUCTURES if limit > 100 else STRUCTURES[:4]
        while True:
            number = self.one_of(self.one_of(structures))
            if limit > 1000 and self.chance(0.7):
                rest = 0 if self.chance(0.15) else number
                number = 1000 * self.one_of(self.one_of(STRUCTURES)) + rest
            if number <= limit:
                return number

    def digits(self, count):
        return str(self.below(10**count)).zfill(count)


class Phrase(NamedTuple):
    """What a template draws.

    `marks` tell what it says, as pairs (kind, number):

        number   any amount, count, measure, degrees ...
        year     of a date or alone
        day      100 * month + day of the month
        minute   100 * hour + minute of the day
        part     100 * denominator + numerator of a fraction
        start    the first three digits of a code
    """

    spoken: str
    written: str
    marks: tuple


class Template(NamedTuple):
    """How to draw a kind of phrase, and the plain words around it.

    `draw` takes a `Draw` and returns a `Phrase`; each of `contexts` has "{}"
    where the phrase belongs. `count` is the number of written forms, or less.
    """

    draw: object
    contexts: tuple
    count: int
