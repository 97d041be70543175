import re
from collections import Counter
from datetime import date

import pytest

from spoken_forms import (
    HELD_OUT,
    NAMES,
    TEMPLATES,
    count_lines,
    draw_line,
    generate,
    held_out,
)
from spoken_numbers import (
    Draw,
    cardinal,
    ordinal,
    ordinal_suffix,
    year,
)

SAMPLE = 20_000


def lines_of(split, count=SAMPLE, seed=11):
    return list(generate(seed, count, split))


def phrases_of(name, split, count):
    """Draws phrases of one template that belong to a split by their numbers."""
    draw = Draw(f"{name} {split}")
    if split:
        draw.preferred = HELD_OUT[split]["number"]
    phrases = []
    while len(phrases) < count:
        phrase = TEMPLATES[name].draw(draw)
        if held_out([name], phrase.marks) == split:
            phrases.append(phrase)
    return phrases


@pytest.fixture(scope="module")
def phrases():
    return {
        name: {
            "train": phrases_of(name, None, 10_000),
            "test": phrases_of(name, "test", 1_000),
        }
        for name in NAMES
    }


class Words:
    """Reads spoken numbers: the inverse of the grammar, written on its own."""

    small = {
        word: value
        for value, word in enumerate(
            "zero one two three four five six seven eight nine ten eleven "
            "twelve thirteen fourteen fifteen sixteen seventeen eighteen "
            "nineteen".split()
        )
    }
    small.update(
        twenty=20,
        thirty=30,
        forty=40,
        fifty=50,
        sixty=60,
        seventy=70,
        eighty=80,
        ninety=90,
    )

    @classmethod
    def value(cls, words):
        total = group = 0
        for word in words.split():
            if word == "million":
                total, group = group * 1_000_000, 0
            elif word == "thousand":
                total, group = total + group * 1000, 0
            elif word == "hundred":
                group *= 100
            elif word != "and":
                group += cls.small[word]
        return total + group


@pytest.mark.parametrize("with_and", [True, False])
def test_cardinals_read_back_as_the_number(with_and):
    numbers = [*range(10_000), *range(0, 1_000_001, 997), 999_999, 1_000_000]
    for number in numbers:
        assert Words.value(cardinal(number, with_and)) == number


@pytest.mark.parametrize(
    "number, words, suffix",
    [
        (1, "first", "st"),
        (12, "twelfth", "th"),
        (20, "twentieth", "th"),
        (42, "forty second", "nd"),
        (113, "one hundred and thirteenth", "th"),
        (200, "two hundredth", "th"),
        (503, "five hundred and third", "rd"),
    ],
)
def test_ordinals_have_their_words_and_suffix(number, words, suffix):
    assert ordinal(number) == words
    assert ordinal_suffix(number) == suffix


@pytest.mark.parametrize(
    "number, words",
    [
        (1500, "fifteen hundred"),
        (1705, "seventeen oh five"),
        (1999, "nineteen ninety nine"),
        (2000, "two thousand"),
        (2009, "two thousand and nine"),
        (2013, "twenty thirteen"),
    ],
)
def test_years_are_said_as_people_say_them(number, words):
    assert year(number) == words


@pytest.mark.parametrize(
    "template, spoken, written",
    [
        ("count", "one million", "1,000,000"),
        ("count", "seven hundred thousand and four", "700,004"),
        ("count", "a thousand and two", "1,002"),
        ("place", "twenty third", "23rd"),
        ("negative", "minus eighty thousand", "-80,000"),
        ("range", "ten to twenty", "10-20"),
        ("dollars", "twelve dollars and five cents", "$12.05"),
        ("dollars", "one dollar", "$1"),
        ("pounds", "two pounds fifty", "£2.50"),
        ("pounds", "three pounds and one penny", "£3.01"),
        ("euros", "six euros nine cents", "€6.09"),
        ("decimal", "zero point zero five", "0.05"),
        ("percentage", "forty three point five percent", "43.5%"),
        ("fraction", "two thirds", "2/3"),
        ("fraction", "five and a half", "5 1/2"),
        ("temperature", "minus twelve degrees celsius", "-12°C"),
        ("measure", "three point five kilometres", "3.5 km"),
        ("measure", "one gram", "1 g"),
        ("year", "nineteen oh four", "1904"),
        ("month", "may twenty ten", "2010-05"),
        ("digital time", "nine fifteen p m", "21:15"),
        ("digital time", "twelve oh five a m", "00:05"),
        ("digital time", "twelve p m", "12:00"),
        ("clock face", "quarter past seven in the evening", "19:15"),
        ("clock face", "ten to six in the morning", "05:50"),
        ("clock face", "half past twelve in the afternoon", "12:30"),
        ("clock face", "ten to twelve in the morning", "11:50"),
        ("clock face", "ten to twelve at night", "23:50"),
        ("clock face", "ten past twelve at night", "00:10"),
        ("clock face", "ten to one in the afternoon", "12:50"),
        ("clock face", "eight o clock in the morning", "08:00"),
        ("clock face", "noon", "12:00"),
        ("clock face", "midnight", "00:00"),
        ("duration", "two hours and five minutes", "2 h 5 min"),
        ("duration", "one second", "1 s"),
    ],
)
def test_written_forms_agree_with_hand_written_ones(template, spoken, written):
    draw = Draw(1)
    numbers = re.findall(r"\d+", written.replace(",", ""))
    draw.preferred = [(int(number), int(number)) for number in numbers]
    for _ in range(50_000):
        phrase = TEMPLATES[template].draw(draw)
        if phrase.spoken == spoken:
            break
    assert (phrase.spoken, phrase.written) == (spoken, written)


def test_codes_read_back_digit_by_digit(phrases):
    for spoken, written, _ in phrases["code"]["train"]:
        digits, repeat = "", 1
        for word in spoken.split():
            if word == "double":
                repeat = 2
            else:
                digit = 0 if word == "oh" else Words.small[word]
                digits, repeat = digits + str(digit) * repeat, 1
        assert digits == written


@pytest.mark.parametrize("name", ["day first", "month first"])
def test_dates_are_real_and_say_day_month_and_year(phrases, name):
    for spoken, written, _ in phrases[name]["train"]:
        day = date.fromisoformat(written)
        month = f"{day:%B}".lower()
        years = [
            year(day.year, in_thousands, with_and)
            for in_thousands in (True, False)
            for with_and in (True, False)
        ]
        if name == "day first":
            start = f"{ordinal(day.day)} of {month} "
        else:
            start = f"{month} {ordinal(day.day)} "
        assert spoken.replace("the ", "") in [start + words for words in years]


def test_there_are_enough_templates_and_lines():
    assert len(TEMPLATES) >= 12
    assert count_lines() >= 10**7


def test_counts_of_small_templates_are_what_can_be_drawn():
    for name in ("clock face", "digital time", "temperature"):
        draw = Draw(3)
        written = {TEMPLATES[name].draw(draw).written for _ in range(40_000)}
        assert len(written) == TEMPLATES[name].count


def test_a_spoken_phrase_has_one_written_form(phrases):
    written = {}
    for name in NAMES:
        if TEMPLATES[name].contexts[0] != "{}":
            continue
        for phrase in phrases[name]["train"] + phrases[name]["test"]:
            known = written.setdefault(phrase.spoken, phrase.written)
            assert known == phrase.written, phrase.spoken


def test_a_spoken_line_has_one_written_form():
    written = {}
    for split in ("train", "valid", "test"):
        for spoken, form in lines_of(split):
            assert written.setdefault(spoken, form) == form


def test_the_same_seed_gives_the_same_lines():
    first = lines_of("train", 50, seed=5)
    assert first == lines_of("train", 50, seed=5)
    assert first != lines_of("train", 50, seed=6)


def test_splits_share_no_line():
    train, valid, test = (
        {spoken for spoken, _ in lines_of(split)}
        for split in ("train", "valid", "test")
    )
    assert not train & test
    assert not train & valid
    assert not valid & test


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_lines_obey_the_rule_of_their_split(split):
    draw = Draw(7)
    expected = None if split == "train" else split
    for _ in range(SAMPLE):
        _, _, names, marks = draw_line(draw, split)
        assert held_out(names, marks) == expected


def test_held_out_pairs_are_told_in_either_order():
    pairs = {
        split: {
            (one, two)
            for one in NAMES
            for two in NAMES
            if held_out([one, two]) == split
        }
        for split in (None, "valid", "test")
    }
    for split in ("valid", "test"):
        assert pairs[split] == {(two, one) for one, two in pairs[split]}
        assert len({one for one, _ in pairs[split]}) == len(NAMES)
    assert len(pairs[None]) > len(NAMES) ** 2 / 2


@pytest.mark.parametrize(
    "names, marks, split",
    [
        (["count"], [("number", 339_999)], None),
        (["count"], [("number", 340_000)], "test"),
        (["count"], [("number", 349_999)], "test"),
        (["count"], [("number", 350_000)], None),
        (["count"], [("number", 3_400)], "valid"),
        (["month"], [("year", 1931)], "test"),
        (["month"], [("year", 1939)], None),
        (["range"], [("number", 46), ("number", 53)], "test"),
        (["range"], [("number", 53), ("number", 55)], "valid"),
    ],
)
def test_ranges_are_kept_out_up_to_their_ends(names, marks, split):
    assert held_out(names, marks) == split


def written_numbers(written):
    """Finds whole numbers of counts and prices in a line, without a parse."""
    found = re.findall(r"(?<![-\d.,/:])\d{1,3}(?:,\d{3})*(?![-\d:,/])", written)
    return [int(number.replace(",", "")) for number in found]


def test_written_training_lines_show_nothing_kept_for_the_test():
    ranges = HELD_OUT["test"]
    for spoken, written in lines_of("train"):
        for clock in re.findall(r"\d\d:\d\d", written):
            minute = int(clock.replace(":", ""))
            assert all(not a <= minute <= b for a, b in ranges["minute"])
        for day in re.findall(r"\d{4}-(\d\d-\d\d)", written):
            day = int(day.replace("-", ""))
            assert all(not a <= day <= b for a, b in ranges["day"])
        for number in re.findall(r"(\d{4})-\d\d", written):
            assert all(not a <= int(number) <= b for a, b in ranges["year"])
        if re.search("call|dial|code|in |since ", spoken):
            continue
        for number in written_numbers(written):
            assert all(not a <= number <= b for a, b in ranges["number"])


def test_test_lines_hold_every_template_in_each_place():
    draw = Draw(13)
    drawn = [draw_line(draw, "test")[2] for _ in range(2_000)]
    assert {names[0] for names in drawn if len(names) == 1} == set(NAMES)
    assert {names[0] for names in drawn if len(names) == 2} == set(NAMES)
    assert {names[-1] for names in drawn if len(names) == 2} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_training_shows_each_word_and_digit_of_the_test(phrases, name):
    """Checks that the test asks for new combinations, not for new parts."""

    def words(drawn):
        return {word for phrase in drawn for word in phrase.spoken.split()}

    def places(drawn):
        return Counter(
            place for phrase in drawn for place in enumerate(phrase.written)
        )

    train, test = phrases[name]["train"], phrases[name]["test"]
    assert words(test) <= words(train)
    seen = places(train)
    assert [place for place in places(test) if not seen[place]] == []


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="split is 'dev', expected one of"):
        next(generate(1, 1, "dev"))
