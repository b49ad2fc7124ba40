# ruff: noqa: RUF001 - letters of many scripts are what this module is about
"""The terms of a word in a document's language, for every language but English (`stem`).

Words of scripts with spaces lose the endings that Snowball's rules for the language know; then accents and
variants of letters are folded, so that a query without accents matches. Words that only carry grammar are
dropped. Chinese, Japanese and Korean give overlapping pairs of characters, inside any text; Thai, Lao, Khmer
and Burmese pairs of syllable-like clusters, because a single sign of theirs says too little.
"""

import re
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from holdfast.core import languages
from holdfast.core.function_words import FUNCTION_WORDS
from holdfast.extras import LazyModule
from holdfast.search import letter_folding

if TYPE_CHECKING:
    import Stemmer
else:
    Stemmer = LazyModule("Stemmer")

_LONGEST_STEMMED = 60  # a longer run of letters is no word
_LETTER = re.compile(r"\w")
_NOT_WORD = re.compile(rf"[^\w{letter_folding.MARKS}]+|_+")
_CLUSTERED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
# A vowel that is written first, a letter, and what belongs to it; after a sign that stacks, a letter more.
_CLUSTER = re.compile(
    "[เ-ไເ-ໄ]?.(?:[\u1039\u17d2].|[ะ-ฺ็-๎ະ-ຼ່-ໍ\u102b-\u1038\u103a-\u103e\u1056-\u1059\u17b6-\u17d1\u17d3\u17dd])*",
    re.DOTALL,
)
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_HANGUL = re.compile("[\uac00-\ud7af]+")
_PARTICLES = re.compile("(?<=^.)(?:에서|에게|으로|까지|부터|처럼|보다|한테|[을를이가은는에의도로와과만])$")
_ELISIONS = {
    "fr": re.compile("^(?:jusqu|lorsqu|puisqu|quoiqu|presqu)['’ʼ](?=\\w)", re.IGNORECASE),
    "it": re.compile(
        "^(?:dell|nell|all|sull|dall|coll|un|quell|quest|gl|bell|sant|tutt|c|d|l|m|s|t|v)['’ʼ](?=\\w)",
        re.IGNORECASE,
    ),
    "ca": re.compile("^(?:d|l|m|n|s|t)['’ʼ](?=\\w)", re.IGNORECASE),
}


class _Stemmers(threading.local):
    """The stemmers of each thread, because the objects are not thread-safe; without a cache of their own."""

    def __init__(self) -> None:
        self._by_rules: dict[str, Callable[[str], str]] = {}

    def of(self, rules: str) -> Callable[[str], str]:
        if rules not in self._by_rules:
            self._by_rules[rules] = Stemmer.Stemmer(rules, 0).stemWord
        return self._by_rules[rules]


_stemmers = _Stemmers()


class TermSpan(NamedTuple):
    """A term and where it is in the text it was made of."""

    start: int
    end: int
    term: str


@cache
def _stop_words(code: str) -> frozenset[str]:
    words = FUNCTION_WORDS.get(code, frozenset())
    return words | {letter_folding.fold(word) for word in words}


def without_elision(number: int, piece: str) -> str:
    """A word without the article that is joined to it by an apostrophe."""
    pattern = _ELISIONS.get(languages.by_number(number).code)
    return piece if pattern is None else pattern.sub("", piece)


def terms(number: int, part: str) -> Iterator[str]:
    """The terms of a run of letters in the language of this number; of any length, and not folded yet."""
    language = languages.by_number(number)
    if part.isascii():
        yield from _stemmed(language, part.lower())
        return
    for run in _NOT_WORD.split(letter_folding.composed(part)):
        at = 0
        for unspaced in letter_folding.UNSPACED.finditer(run):
            yield from _stemmed(language, run[at : unspaced.start()])
            yield from (span.term for span in unspaced_terms(number, unspaced.group()))
            at = unspaced.end()
        yield from _stemmed(language, run[at:])


def _stemmed(language: languages.Language, word: str) -> Iterator[str]:
    if not _LETTER.search(word) or word in _stop_words(language.code):
        return
    if language.snowball is not None and len(word) <= _LONGEST_STEMMED and not word.isdigit():
        word = _stemmers.of(language.snowball)(word) or word
    if folded := "".join(_NOT_WORD.split(letter_folding.fold(word))):
        yield folded


def unspaced_terms(number: int, run: str) -> Iterator[TermSpan]:
    """The terms of a run of characters without spaces, with their positions."""
    code = languages.by_number(number).code
    at = 0
    for clustered in _CLUSTERED.finditer(run):
        yield from _pairs(code, run, at, list(range(at, clustered.start() + 1)))
        edges = [match.start() for match in _CLUSTER.finditer(run, clustered.start(), clustered.end())]
        yield from _pairs(code, run, clustered.start(), [*edges, clustered.end()])
        at = clustered.end()
    yield from _pairs(code, run, at, list(range(at, len(run) + 1)))


def _pairs(code: str, run: str, start: int, edges: list[int]) -> Iterator[TermSpan]:
    """Pairs of what lies between the edges, except those that only carry grammar; a single one as it is."""
    end = edges[-1]
    if len(edges) == 2:
        yield TermSpan(start, end, run[start:end])
        return
    stop_words = _stop_words(code)
    for (first, _), (_, last) in pairwise(pairwise(edges)):
        if run[first:last] not in stop_words:
            yield TermSpan(first, last, run[first:last])
    if code == "ja":
        # A word of one character among kana.
        for alone in _HAN.finditer(run, start, end):
            if alone.end() - alone.start() == 1:
                yield TermSpan(alone.start(), alone.end(), alone.group())
    elif code == "ko" and _PARTICLES.search(run[start:end]) and _HANGUL.match(run, start):
        yield TermSpan(start, start + 1, run[start])
