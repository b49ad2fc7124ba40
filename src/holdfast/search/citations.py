"""An answer cut into sentences, each with the sources that it cites and how far they support it.

An answer is foreign text: it is cut at `MOST_ANSWER` characters and read in passes that never go back.
A citation is a number in brackets, `[2]` or `[1, 3]`. One that names no source is removed and counted.
A sentence that was there before is dropped: models that lose the thread repeat themselves.

`support` says how much can be checked without understanding:

* `quoted`: the sentence, or a quotation in it, stands word for word in a source that it cites;
* `worded`: its numbers, dates and names are all in one of the sources that it cites;
* `none`: it cites nothing, or a number, a date or a name is missing there, or no word of it is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.search import facts
from holdfast.search.facts import TextFacts

MOST_ANSWER = 20_000
MOST_CITED = 10  # sources of one sentence that are compared
QUOTED_WORDS = 4  # fewer words stand in many texts by chance
QUOTED_LETTERS = 8  # the same, where words are not separated by spaces
CONTENT_LETTERS = 4  # shorter words say little

_CITATION = re.compile(r"[\[【](\d{1,3}(?:\s{0,2}[,;]\s{0,2}\d{1,3}){0,20})[\]】]")
_QUOTATION = re.compile('["“„«]([^"“”„«»]{1,2000})["”“»]')
_LIST_MARK = re.compile(r"^\s{0,20}(?:[-*•#]{1,6}|\d{1,3}[.)])\s{1,20}")
_SPACES = re.compile(r"[ \t]{2,}")
_BEFORE_MARK = re.compile(r"[ \t]+([.,;:!?])")
_WIDE_STOPS = frozenset("\u3002\uff01\uff1f")  # those of Chinese and Japanese
_STOPS = frozenset(".!?\u2026") | _WIDE_STOPS
_CLOSING = frozenset("\"')]\u201d\u2019\u00bb\u3011*_")
_SHORTENED = frozenset(
    re.findall(
        r"\S+",
        """
        mr mrs ms dr prof st no nr art sec fig vol ed eds approx ca bzw vgl inc ltd co corp vs etc al e.g i.e
        u.s z.b d.h u.a p pp cf jan feb mar apr jun jul aug sep sept oct nov dec
        """,
    )
)


class Support(StrEnum):
    """How far the cited sources support a sentence."""

    QUOTED = "quoted"
    WORDED = "worded"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence without its citations, the numbers of the sources that it cites, and their support."""

    text: str
    cites: tuple[int, ...]
    support: Support


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The answer with the citations that name a source; how many others were removed; what was repeated."""

    text: str
    sentences: tuple[CheckedSentence, ...]
    unknown_citations: int
    repeated: int


def check(answer: str, sources: Sequence[str]) -> CheckedAnswer:
    """The answer, checked against the texts of its sources: `[1]` is the first of them."""
    checker = _Checker(sources)
    written: list[str] = []
    sentences: list[CheckedSentence] = []
    seen: set[str] = set()
    unknown = repeated = 0
    for piece in _pieces(answer[:MOST_ANSWER]):
        numbers = [int(each) for match in _CITATION.finditer(piece) for each in re.findall(r"\d+", match[1])]
        unknown += sum(not 1 <= number <= len(sources) for number in numbers)
        cites = tuple(dict.fromkeys(number for number in numbers if 1 <= number <= len(sources)))
        bare = _tidy(_CITATION.sub(" ", piece))
        words = " ".join(_words(_LIST_MARK.sub("", bare)))
        if not words:
            if cites and sentences and not bare.strip():
                sentences[-1] = checker.sentence(sentences[-1].text, (*sentences[-1].cites, *cites))
            written.append(_known(piece, len(sources)))
            continue
        if words in seen:
            repeated += 1
            continue
        seen.add(words)
        sentences.append(checker.sentence(bare.strip(), cites))
        written.append(_known(piece, len(sources)))
    return CheckedAnswer("".join(written).strip(), tuple(sentences), unknown, repeated)


class _Checker:
    """The sources of one answer, each read once, when a sentence cites it."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources
        self._facts: dict[int, TextFacts] = {}
        self._words: dict[int, str] = {}

    def sentence(self, text: str, cites: Sequence[int]) -> CheckedSentence:
        unique = tuple(dict.fromkeys(cites))
        return CheckedSentence(text, unique, self._support(text, unique[:MOST_CITED]))

    def _support(self, text: str, cites: Sequence[int]) -> Support:
        text = _LIST_MARK.sub("", text)
        own = facts.of(text)
        supporting = [number for number in cites if self._holds(number, own)]
        if not supporting:
            return Support.NONE
        parts = [text, *(match[1] for match in _QUOTATION.finditer(text))]
        if any(self._has(number, part) for number in supporting for part in parts):
            return Support.QUOTED
        return Support.WORDED

    def _holds(self, number: int, own: TextFacts) -> bool:
        if number not in self._facts:
            self._facts[number] = facts.of(self._sources[number - 1])
            self._words[number] = f" {' '.join(_words(self._sources[number - 1][: facts.MOST_TEXT]))} "
        known = self._facts[number]
        content = {word for word in own.words if len(word) >= CONTENT_LETTERS and word.isalpha()}
        return not known.lacks(own) and (not content or bool(content & known.words) or _is_unspaced(content))

    def _has(self, number: int, part: str) -> bool:
        words = _words(part)
        if len(words) >= QUOTED_WORDS:
            return f" {' '.join(words)} " in self._words[number]
        joined = "".join(words)
        return not joined.isascii() and len(joined) >= QUOTED_LETTERS and joined in self._words[number]


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _is_unspaced(words: set[str]) -> bool:
    """True for a script without spaces, where a word here is a whole clause."""
    return any(not word.isascii() and len(word) >= QUOTED_LETTERS for word in words)


def _tidy(text: str) -> str:
    return _BEFORE_MARK.sub(r"\1", _SPACES.sub(" ", text))


def _known(piece: str, count: int) -> str:
    """The piece with those of its citations that name a source."""

    def rewrite(match: re.Match[str]) -> str:
        numbers = dict.fromkeys(int(each) for each in re.findall(r"\d+", match[1]))
        return "".join(f"[{number}]" for number in numbers if 1 <= number <= count)

    before = piece
    after = _CITATION.sub(rewrite, piece)
    return after if before == after else _tidy(after)


def _pieces(text: str) -> list[str]:
    """The text in pieces, each a sentence with the citations and spaces after it; together all of it."""
    pieces: list[str] = []
    start = at = run_end = 0
    while at < len(text):
        if text[at] == "\n":
            end = _spaces(text, at)
        elif text[at] in _STOPS:
            # Looked for once for all stops of a run: there may be thousands.
            run_end = run_end if at < run_end else _past_marks(text, at + 1)
            if not _is_end(text, start, at, run_end):
                at += 1
                continue
            end = _after(text, at + 1)
        else:
            at += 1
            continue
        pieces.append(text[start:end])
        start = at = end
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def _past_marks(text: str, at: int) -> int:
    """Where the stops and closing marks that begin at `at` are over."""
    while at < len(text) and (text[at] in _CLOSING or text[at] in _STOPS):
        at += 1
    return at


def _is_end(text: str, start: int, at: int, following: int) -> bool:
    """True if the stop at `at` ends a sentence: not that of `e.g.`, `3.5` or `Dr.`.

    `following` is where the run of marks is over that the stop is in.
    """
    if text[at] in _WIDE_STOPS:
        return True
    if following < len(text) and not text[following].isspace() and text[following] not in "[【":
        return False
    if text[at] != ".":
        return True
    first = max(start, at - 8)
    before = text[first:at].split()[-1:] if not text[max(start, at - 1) : at].isspace() else []
    word = before[0].lstrip("([\"'“").casefold() if before else ""
    is_number = word.isdecimal() and not text[start : at - len(word)].strip()
    return word not in _SHORTENED and not (len(word) == 1 and word.isalpha()) and not is_number


def _after(text: str, at: int) -> int:
    """Where the sentence that ends before `at` is over, with its closing marks, citations and spaces."""
    at = _past_marks(text, at)
    while True:
        following = _spaces(text, at)
        match = _CITATION.match(text, following)
        if match is None or "\n" in text[at:following]:
            return following
        at = match.end()
        while at < len(text) and text[at] in _STOPS:
            at += 1


def _spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
