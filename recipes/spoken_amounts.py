"""Templates of counts, money, measures, fractions and other numbers."""

from spoken_numbers import (
    DIGITS,
    MILLION,
    UNDER_HUNDRED,
    Phrase,
    Template,
    cardinal,
    ordinal,
    ordinal_suffix,
)


def _count(draw):
    number = draw.number(MILLION)
    spoken = cardinal(number, draw.chance())
    if draw.chance(0.2) and spoken.startswith(("one hundred", "one thousand")):
        spoken = "a" + spoken[3:]
    return Phrase(spoken, f"{number:,}", (("number", number),))


def _place(draw):
    number = draw.number(999)
    written = f"{number}{ordinal_suffix(number)}"
    spoken = ordinal(number, draw.chance())
    return Phrase(spoken, written, (("number", number),))


def _negative(draw):
    number = draw.number(MILLION)
    spoken = f"minus {cardinal(number, draw.chance())}"
    return Phrase(spoken, f"-{number:,}", (("number", number),))


def _range(draw):
    low, high = draw.number(999), draw.number(999)
    while low == high:
        high = draw.number(999)
    low, high = min(low, high), max(low, high)
    with_and = draw.chance()
    spoken = f"{cardinal(low, with_and)} to {cardinal(high, with_and)}"
    return Phrase(spoken, f"{low}-{high}", (("number", low), ("number", high)))


def _money(draw, sign, unit, units, cent, cents):
    """Draws an amount: whole, with hundredths, or said without "cents"."""
    if draw.chance():
        whole, rest = draw.number(MILLION), 0
    else:
        whole, rest = draw.number(999), draw.number(99)
    with_and = draw.chance()
    spoken = f"{cardinal(whole, with_and)} {unit if whole == 1 else units}"
    written = f"{sign}{whole:,}"
    if rest:
        written += f".{rest:02}"
        if rest >= 10 and draw.chance(0.3):
            spoken += f" {UNDER_HUNDRED[rest]}"
        else:
            and_ = " and " if with_and else " "
            name = cent if rest == 1 else cents
            spoken += f"{and_}{UNDER_HUNDRED[rest]} {name}"
    return Phrase(spoken, written, (("number", whole), ("number", rest)))


def _dollars(draw):
    return _money(draw, "$", "dollar", "dollars", "cent", "cents")


def _pounds(draw):
    return _money(draw, "£", "pound", "pounds", "penny", "pence")


def _euros(draw):
    return _money(draw, "€", "euro", "euros", "cent", "cents")


def _fraction_digits(draw, most):
    written = draw.digits(1 + draw.below(most))
    return " ".join([DIGITS[int(digit)] for digit in written]), written


def _decimal(draw):
    whole = 0 if draw.chance(0.15) else draw.number(999)
    spoken, written = _fraction_digits(draw, 3)
    spoken = f"{cardinal(whole, draw.chance())} point {spoken}"
    return Phrase(spoken, f"{whole}.{written}", (("number", whole),))


def _percentage(draw):
    whole = 0 if draw.chance(0.1) else draw.number(100)
    spoken, written = cardinal(whole), f"{whole}"
    if draw.chance(0.7):
        spoken_digits, digits = _fraction_digits(draw, 2)
        spoken += f" point {spoken_digits}"
        written += f".{digits}"
    return Phrase(f"{spoken} percent", f"{written}%", (("number", whole),))


PARTS = "half third quarter fifth sixth seventh eighth ninth tenth".split()


def _fraction(draw):
    below = 2 + draw.below(9)
    above = 1 + draw.below(below - 1)
    name = PARTS[below - 2] + ("s" if above > 1 else "")
    one = above == 1 and below < 5 and draw.chance()
    spoken = f"{'a' if one else DIGITS[above]} {name}"
    written, marks = f"{above}/{below}", (("part", 100 * below + above),)
    if draw.chance(0.7):
        whole = draw.number(99)
        spoken = f"{UNDER_HUNDRED[whole]} and {spoken}"
        written = f"{whole} {written}"
        marks += (("number", whole),)
    return Phrase(spoken, written, marks)


SCALES = (("celsius", "C"), ("fahrenheit", "F"))


def _temperature(draw):
    number = draw.number(99)
    name, letter = draw.one_of(SCALES)
    degrees = "degree" if number == 1 else "degrees"
    spoken = f"{UNDER_HUNDRED[number]} {degrees} {name}"
    written = f"{number}\N{DEGREE SIGN}{letter}"
    if draw.chance():
        spoken, written = f"minus {spoken}", f"-{written}"
    return Phrase(spoken, written, (("number", number),))


UNITS = (
    ("metre", "m"),
    ("kilometre", "km"),
    ("gram", "g"),
    ("kilogram", "kg"),
    ("litre", "l"),
)


def _measure(draw):
    name, symbol = draw.one_of(UNITS)
    if draw.chance():
        number = draw.number(9_999)
        spoken, written = cardinal(number, draw.chance()), f"{number:,}"
    else:
        number = draw.number(999)
        spoken, digit = _fraction_digits(draw, 1)
        spoken = f"{cardinal(number, draw.chance())} point {spoken}"
        written = f"{number}.{digit}"
    if written != "1":
        name += "s"
    return Phrase(
        f"{spoken} {name}", f"{written} {symbol}", (("number", number),)
    )


def _code(draw):
    """Draws digits said one by one, among which "double" comes once at most.

    More of them would be a lesson in counting, the hardest of all.
    """
    spoken, written, doubled = [], "", False
    for _ in range(4 + draw.below(3)):
        digit = draw.below(10)
        word = DIGITS[digit] if digit else draw.one_of(("oh", "zero"))
        written += str(digit)
        if not doubled and draw.chance(0.2):
            doubled = True
            word = f"double {word}"
            written += str(digit)
        spoken.append(word)
    return Phrase(" ".join(spoken), written, (("start", int(written[:3])),))


PRICES = MILLION + 999 * 99
AMOUNTS = {
    "count": Template(
        _count, ("{}", "we sold {} tickets", "there are {} people"), MILLION
    ),
    "place": Template(_place, ("{}", "she came {}", "on the {} floor"), 999),
    "negative": Template(
        _negative, ("{}", "a balance of {}", "down to {}"), MILLION
    ),
    "range": Template(_range, ("pages {}", "see pages {}"), 999 * 998 // 2),
    "dollars": Template(_dollars, ("{}", "it costs {}", "for {}"), PRICES),
    "pounds": Template(_pounds, ("{}", "it costs {}", "for {}"), PRICES),
    "euros": Template(_euros, ("{}", "it costs {}", "for {}"), PRICES),
    "decimal": Template(_decimal, ("{}", "a factor of {}"), 999 * 1110),
    "percentage": Template(
        _percentage, ("{}", "it grew by {}", "a share of {}"), 101 * 111
    ),
    "fraction": Template(_fraction, ("{}", "add {}", "times {}"), 45 * 100),
    "temperature": Template(
        _temperature, ("{}", "it was {}", "below {}"), 2 * 2 * 99
    ),
    "measure": Template(
        _measure, ("{}", "after {}", "we used {}"), 5 * (9_999 + 999 * 10)
    ),
    "code": Template(_code, ("call {}", "dial {}", "code {}"), 10**6),
}
