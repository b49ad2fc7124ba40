"""What can be checked in a text without understanding it: its numbers, its dates and its names.

Written in two ways they are the same: `1,200` and `1200`, `3 March 2026` and `2026-03-03`, `ACME's` and
`Acme`. Everything is found in one pass over at most `MOST_TEXT` characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_TEXT = 100_000
# Where so many of the words inside sentences begin with a capital, as in German, a capital makes no name.
NOUN_CAPITALS = 0.25

_WORD = re.compile(r"[^\W_]+")
# Bounded, so that a long run of digits and separators is not looked through again and again.
_NUMBER = re.compile(r"(?<![^\W\d_])\d{1,40}(?:[.,'\u2019\u00a0\u202f]\d{1,40}){0,12}(?![^\W_])")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'\u2019\u00a0\u202f]\d{3}){1,12}")
_SEPARATORS = re.compile("[.,'\u2019\u00a0\u202f]")
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier",
            "february feb februar février",
            "march mar märz mars",
            "april apr avril",
            "may mai",
            "june jun juni juin",
            "july jul juli juillet",
            "august aug août",
            "september sep sept septembre",
            "october oct oktober octobre",
            "november nov novembre",
            "december dec dezember décembre",
        ),
        start=1,
    )
    for name in names.split()
}
_DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<day>\d{1,2})[./](?P<month>\d{1,2})[./](?P<year>\d{4})(?!\d)"),
    re.compile(
        r"(?<!\d)(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?\s{1,3}(?P<month>[^\W\d_]{3,9})\.?,?\s{1,3}(?P<year>\d{4})(?!\d)"
    ),
    re.compile(
        r"\b(?P<month>[^\W\d_]{3,9})\.?\s{1,3}(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s{1,3}(?P<year>\d{4})(?!\d)"
    ),
)
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SPELLED = {match.group(): str(number) for number, match in enumerate(_WORD.finditer(_UNITS))} | {
    match.group(): str(10 * number) for number, match in enumerate(_WORD.finditer(_TENS), start=2)
}
_ENDS = frozenset(".!?:;\n•|")


@dataclass(frozen=True, slots=True)
class TextFacts:
    """The numbers (as digits), dates (year, month, day), names and words of a text, all in one spelling.

    `spelled` are numbers that stand there as words.
    """

    numbers: frozenset[str]
    dates: frozenset[tuple[int, int, int]]
    names: frozenset[str]
    words: frozenset[str]
    spelled: frozenset[str]

    def lacks(self, of: TextFacts) -> bool:
        """True if the other text has a number, a date or a name that this one has not."""
        parts = self.numbers | self.spelled | {str(part) for date in self.dates for part in date}
        return (
            not all(date in self.dates or all(str(part) in parts for part in date) for date in of.dates)
            or not of.numbers <= parts
            or not of.names <= self.words
        )


def of(text: str) -> TextFacts:
    """The facts of the text; of a long one only those of its beginning."""
    text = text[:MOST_TEXT]
    rest, dates = _dates(text)
    numbers = {_plain_number(match.group()) for match in _NUMBER.finditer(rest)}
    words: set[str] = set()
    names: set[str] = set()
    capitals = inside = 0
    end = 0
    for match in _WORD.finditer(text):
        word = match.group()
        folded = word.casefold()
        words.add(folded)
        begins = end == 0 or any(mark in _ENDS for mark in text[end : match.start()])
        end = match.end()
        if word.isdecimal() or folded in _MONTHS or len(word) < 2:
            continue
        if _is_code(word):
            names.add(folded)
            continue
        if not begins:
            inside += 1
            if word[0].isupper():
                capitals += 1
                names.add(folded)
    if inside and capitals / inside > NOUN_CAPITALS and inside > 8:
        names = {word for word in names if any(letter.isdigit() for letter in word)}
    spelled = frozenset(number for word, number in _SPELLED.items() if word in words)
    return TextFacts(frozenset(numbers), frozenset(dates), frozenset(names), frozenset(words), spelled)


def _is_code(word: str) -> bool:
    """True for an abbreviation or a part number: `USB`, `B12`."""
    has_digit = any(letter.isdigit() for letter in word)
    return has_digit or (word.isupper() and word.isascii())


def _dates(text: str) -> tuple[str, set[tuple[int, int, int]]]:
    """The text without its dates, and the dates."""
    dates: set[tuple[int, int, int]] = set()

    def take(match: re.Match[str]) -> str:
        month = match["month"]
        number = int(month) if month.isdecimal() else _MONTHS.get(month.casefold(), 0)
        if not (1 <= number <= 12 and 1 <= int(match["day"]) <= 31):
            return match.group()
        dates.add((int(match["year"]), number, int(match["day"])))
        return " "

    for pattern in _DATES:
        text = pattern.sub(take, text)
    return text, dates


def _plain_number(written: str) -> str:
    """Digits and perhaps a point: the same for `1,200`, `1.200` and `1200`; a comma may be the point."""
    if _GROUPED.fullmatch(written):
        digits = _SEPARATORS.sub("", written)
    else:
        whole, _, part = _parted(written)
        digits = _SEPARATORS.sub("", whole) + (f".{part}" if part else "")
    whole, point, part = digits.partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f"{point}{part}" if part else "")


def _parted(written: str) -> tuple[str, str, str]:
    last = max(written.rfind("."), written.rfind(","))
    return (written, "", "") if last < 0 else (written[:last], written[last], written[last + 1 :])
