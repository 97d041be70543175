"""Templates of years, dates, times of day and spans of time."""

import calendar
import datetime

from spoken_numbers import (
    UNDER_HUNDRED,
    Phrase,
    Template,
    ordinal,
    year,
)

FIRST_YEAR, LAST_YEAR = 1500, 2099
YEARS = LAST_YEAR - FIRST_YEAR + 1
DAYS = datetime.date(LAST_YEAR + 1, 1, 1) - datetime.date(FIRST_YEAR, 1, 1)
MONTHS = [name.lower() for name in calendar.month_name[1:]]


def _draw_year(draw):
    number = FIRST_YEAR + draw.below(YEARS)
    if draw.chance(0.3):
        # Hundreds and "oh four" are spoken in their own way, and rare.
        number += draw.below(10) - number % 100
    return number, year(number, draw.chance(), draw.chance())


def _year(draw):
    number, spoken = _draw_year(draw)
    return Phrase(spoken, f"{number}", (("year", number),))


def _month(draw):
    number, spoken = _draw_year(draw)
    month = 1 + draw.below(12)
    spoken = f"{MONTHS[month - 1]} {spoken}"
    return Phrase(spoken, f"{number}-{month:02}", (("year", number),))


def _date(draw, form):
    number, spoken_year = _draw_year(draw)
    month = 1 + draw.below(12)
    day = 1 + draw.below(calendar.monthrange(number, month)[1])
    the = "the " if draw.chance() else ""
    spoken_day, name = ordinal(day), MONTHS[month - 1]
    spoken = form.format(the=the, day=spoken_day, month=name)
    marks = (("year", number), ("day", 100 * month + day))
    written = f"{number}-{month:02}-{day:02}"
    return Phrase(f"{spoken} {spoken_year}", written, marks)


def _day_first(draw):
    return _date(draw, "{the}{day} of {month}")


def _month_first(draw):
    return _date(draw, "{month} {the}{day}")


def _time(spoken, hour, minute):
    marks = (("minute", 100 * hour + minute),)
    return Phrase(spoken, f"{hour:02}:{minute:02}", marks)


def _digital_time(draw):
    hour, minute = draw.below(24), draw.below(60)
    if draw.chance(0.3):
        minute = draw.below(10)
    spoken = UNDER_HUNDRED[hour % 12 or 12]
    if minute:
        spoken += f"{' oh ' if minute < 10 else ' '}{UNDER_HUNDRED[minute]}"
    return _time(f"{spoken} {'ap'[hour // 12]} m", hour, minute)


CLOCK_FACE = (
    "{hour} o clock",
    "five past {hour}",
    "ten past {hour}",
    "quarter past {hour}",
    "twenty past {hour}",
    "twenty five past {hour}",
    "half past {hour}",
    "twenty five to {hour}",
    "twenty to {hour}",
    "quarter to {hour}",
    "ten to {hour}",
    "five to {hour}",
)


def _clock_face_time(draw):
    """Draws a time as read from a dial: the named hour tells the day's part.

    "Ten to twelve at night" is 23:50, "ten past twelve at night" 00:10.
    """
    if draw.chance(0.05):
        return _time("noon", 12, 0)
    if draw.chance(0.05):
        return _time("midnight", 0, 0)
    named, twelfth = draw.below(24), draw.below(12)
    if named == 0 or named >= 21:
        part = "at night"
    elif named < 12 or named == 12 and twelfth > 6:
        part = "in the morning"
    else:
        part = "in the evening" if named >= 18 else "in the afternoon"
    hour = (named - (twelfth > 6)) % 24
    words = CLOCK_FACE[twelfth].format(hour=UNDER_HUNDRED[named % 12 or 12])
    return _time(f"{words} {part}", hour, 5 * twelfth)


SPANS = ("hour", "h"), ("minute", "min"), ("second", "s")


def _duration(draw):
    """Draws one span of time, or two neighbours joined by "and"."""
    first = draw.below(3)
    last = min(2, first + draw.below(2))
    spoken, written, marks = [], [], ()
    for name, symbol in SPANS[first : last + 1]:
        number = draw.number(59)
        plural = "s" if number > 1 else ""
        spoken.append(f"{UNDER_HUNDRED[number]} {name}{plural}")
        written.append(f"{number} {symbol}")
        marks += (("number", number),)
    return Phrase(" and ".join(spoken), " ".join(written), marks)


DATES = {
    "year": Template(_year, ("in {}", "since {}"), YEARS),
    "month": Template(_month, ("{}", "during {}", "until {}"), 12 * YEARS),
    "day first": Template(
        _day_first, ("{}", "on {}", "the meeting is on {}"), DAYS.days
    ),
    "month first": Template(
        _month_first, ("{}", "on {}", "we meet on {}"), DAYS.days
    ),
    "digital time": Template(
        _digital_time, ("{}", "at {}", "the train leaves at {}"), 24 * 60
    ),
    "clock face": Template(
        _clock_face_time, ("{}", "at {}", "we leave at {}"), 24 * 12
    ),
    "duration": Template(
        _duration, ("{}", "it lasts {}", "within {}"), 3 * 59 + 2 * 59**2
    ),
}
