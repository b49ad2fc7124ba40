"""Splits text into terms, for the full-text indexes and for queries.

A term is lower case, has no space, quote or other ASCII punctuation and is at most 40 characters long: the
same single token for FTS5 and for tsvector. Both sides of a search use `analyse`, so a rule may be crude as
long as both use it; `VERSION` names the rules, and words of another version must be recomputed.

The rules: one form for each letter (`letter_folding`); stop words dropped; English stems (`stem`); *wi-fi*
and *camelCase* give their parts and the whole; numbers stay, without thousands separators; Chinese, Japanese,
Korean and Thai give overlapping pairs of characters. In a document of another language words have the stems
of that language (`language_terms`): a text is analysed by the number of its language (`core.languages`).

Each distinct spelling is computed once and cached, so a long text costs one dictionary look-up per word.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

from holdfast.core.languages import ENGLISH_RULES
from holdfast.search import language_terms, letter_folding, term_counts
from holdfast.search.stem import keeps_prefix, stem

VERSION = "2"
LONGEST = 40
MOST_TERMS = 6000  # per text: this many of the longest, at four bytes a letter, fit a tsvector
_REMEMBERED = 200_000
_REMEMBERED_MORE = 50_000  # for each language but English
_WORTH_REMEMBERING = 32
_FEW_TERMS = 4  # more are rare, and would let hostile text grow the cache without bound

_APOSTROPHES = "'\u2019\u02bc"
_HYPHENS = "\\-\u2010\u2011"
_INSIDE = rf"\w{letter_folding.MARKS}{letter_folding.INVISIBLE}"
_RAW_ASCII = re.compile(r"\w+(?:(?:[-'.]|,(?=\d{3}(?!\d)))\w+)*", re.ASCII)
_RAW = re.compile(rf"[{_INSIDE}]+(?:(?:[{_HYPHENS}{_APOSTROPHES}.]|,(?=\d{{3}}(?!\d)))[{_INSIDE}]+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_NOT_WORD = re.compile(rf"[^\w{letter_folding.MARKS}]+|_+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LETTER = re.compile(r"\w")
_NEGATIONS = re.compile(f"[a-z]+n[{_APOSTROPHES}]t", re.IGNORECASE)
_CLITICS = re.compile(f"[{_APOSTROPHES}](?:s|d|m|ll|re|ve)$", re.IGNORECASE)
_ELISIONS = re.compile(f"^(?:[cdjlmnst]|qu)[{_APOSTROPHES}](?=\\w{{3}})", re.IGNORECASE)

_STOP_WORDS = """
a about above after again against all also am an and any are as at be because been before being below
between both but by can cannot could did do does doing down during each either few for from further had
has have having he her here hers herself him himself his how however i if in into is it its itself just
may me might more most must my myself neither no nor not of off on once only or other ought our ours
ourselves out over own per quite rather same shall she should since so some such than that the their
theirs them themselves then there these they this those through thus to too under until up upon us very
was we were what when where whether which while who whom whose why will with within would you your yours
yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
# Stop words that are names when written in capitals.
_NAMES = frozenset({"IT", "US", "WHO"})


def analyse(text: str, most: int = MOST_TERMS, language: int = ENGLISH_RULES) -> list[str]:
    """The terms of a text, in order and with repetitions; the first `most` of them."""
    pattern = _RAW_ASCII if text.isascii() else _RAW
    return list(chain.from_iterable(map(_words_of(language).__getitem__, pattern.findall(text))))[:most]


class TextTerms(NamedTuple):
    """The terms of a text: separated by spaces for `chunks.words`, and as numbers for `term_counts`."""

    words: str
    numbers: bytes


def terms_of(text: str, language: int = ENGLISH_RULES) -> TextTerms:
    """The result of `analyse` for a text to be stored."""
    if language == ENGLISH_RULES and text.isascii():
        # No word contains a space, so whole space-separated tokens are looked up: a fraction of the time.
        tokens = map(_known_whole.__getitem__, text.split())
        parts, numbers = zip(*tokens, strict=True) if text and not text.isspace() else ((), ())
        if len(listed := b"".join(numbers)) <= MOST_TERMS * term_counts.WIDTH:
            return TextTerms(" ".join(filter(None, parts)), listed)
    return _terms_of(analyse(text, language=language))


def _terms_of(terms: Sequence[str]) -> TextTerms:
    return TextTerms(" ".join(terms), term_counts.listed(terms))


def joined(text: str) -> str | None:
    """The terms as `chunks.words` stores them: separated by single spaces, None if there are none."""
    return terms_of(text).words or None


def matches(
    text: str, terms: AbstractSet[str], language: int = ENGLISH_RULES
) -> Iterator[tuple[int, int, AbstractSet[str]]]:
    """(start, end, terms) of each word in a text that gives any of these terms."""
    pattern = _RAW_ASCII if text.isascii() else _RAW
    words = _words_of(language)
    beginnings = {term[:2] for term in terms}
    giving = {
        raw: terms & set(of_word)
        for raw in (set(pattern.findall(text)) if terms else ())
        if (language != ENGLISH_RULES or raw in words or _may_give(raw, beginnings))
        and not terms.isdisjoint(of_word := words[raw])
    }
    for match in pattern.finditer(text) if giving else ():
        if (matched := giving.get(match.group())) is not None:
            yield from _exact(match.group(), match.start(), matched, language)


def _exact(
    raw: str, start: int, terms: AbstractSet[str], language: int
) -> Iterator[tuple[int, int, AbstractSet[str]]]:
    """A match at the characters that give it: where there are no spaces, a run is a whole sentence."""
    origins = _origins(raw) if not raw.isascii() and letter_folding.UNSPACED.search(raw) else None
    if origins is None:
        yield start, start + len(raw), terms
        return
    spans: list[tuple[int, int, set[str]]] = []
    for begin, end, term in _spans(raw, language):
        if term not in terms:
            continue
        first, last = origins[begin], origins[end - 1] + 1
        if spans and first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(last, spans[-1][1]), spans[-1][2] | {term}
        else:
            spans.append((first, last, {term}))
    # Cut at its unspaced characters, a run may give other terms than as a whole: then all of it counts.
    if set().union(*(some for _, _, some in spans)) != terms:
        spans = [(0, len(raw), set(terms))]
    yield from ((start + first, start + last, some) for first, last, some in spans)


def _origins(raw: str) -> list[int] | None:
    """The position in `raw` of each letter of its composed form; None if letters depend on one another."""
    letters = [letter_folding.composed(letter) for letter in raw]
    if "".join(letters) != letter_folding.composed(raw):
        return None
    return [at for at, letter in enumerate(letters) for _ in letter]


def _spans(raw: str, language: int) -> Iterator[tuple[int, int, str]]:
    """The terms of a run with unspaced characters, with their positions in its composed form, in order."""
    composed, words = letter_folding.composed(raw), _words_of(language)
    at = 0
    for unspaced in letter_folding.UNSPACED.finditer(composed):
        yield from ((at, unspaced.start(), term) for term in words[composed[at : unspaced.start()]])
        first, run = unspaced.start(), unspaced.group()
        if language != ENGLISH_RULES:
            spans = sorted(language_terms.unspaced_terms(language, run))
            yield from ((first + begin, first + end, term) for begin, end, term in spans)
        else:
            yield from (
                (first + step, first + step + len(term), term) for step, term in enumerate(_pairs(run))
            )
        at = unspaced.end()
    yield from ((at, len(composed), term) for term in words[composed[at:]])


def _may_give(raw: str, beginnings: AbstractSet[str]) -> bool:
    """False for a plain word whose stem starts otherwise: cheaper than stemming every word."""
    if not (raw.isascii() and raw.isalpha() and raw[1:].islower()):
        return True
    word = raw.lower()
    return word[:2] in beginnings or not keeps_prefix(word)


Value = TypeVar("Value")


class _Remembered(dict[str, Value]):
    """A cache by spelling. Two threads may compute the same entry; the results are equal."""

    most = _REMEMBERED

    def remember(self, raw: str, value: Value) -> Value:
        """Cache the value, unless the spelling is so long that it will hardly occur again; returns it."""
        if len(raw) <= _WORTH_REMEMBERING:
            if len(self) >= self.most:
                self.clear()
            self[raw] = value
        return value


class _Known(_Remembered[tuple[str, ...]]):
    """The terms of a word."""

    def __missing__(self, raw: str) -> tuple[str, ...]:
        terms = tuple(_terms(raw))
        return self.remember(raw, terms) if len(terms) <= _FEW_TERMS else terms


class _KnownWhole(_Remembered[TextTerms]):
    """The terms of ASCII text between two spaces: a word with its punctuation, or several."""

    def __missing__(self, raw: str) -> TextTerms:
        return self.remember(raw, _terms_of(analyse(raw)))


class _KnownIn(_Remembered[tuple[str, ...]]):
    """The terms of a word in a language other than English."""

    most = _REMEMBERED_MORE

    def __init__(self, language: int) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, raw: str) -> tuple[str, ...]:
        terms = tuple(term[:LONGEST] for term in _terms(raw, self._language))
        return self.remember(raw, terms) if len(terms) <= _FEW_TERMS else terms


_known = _Known()
_known_whole = _KnownWhole()
_known_in: dict[int, _KnownIn] = {}


def _words_of(language: int) -> _Remembered[tuple[str, ...]]:
    if language == ENGLISH_RULES:
        return _known
    if (known := _known_in.get(language)) is None:
        known = _known_in.setdefault(language, _KnownIn(language))
    return known


def _terms(raw: str, language: int = ENGLISH_RULES) -> Iterator[str]:
    """The terms of one run of letters, digits and joining characters."""
    is_word = raw.isascii() and raw.isalnum() and language == ENGLISH_RULES
    if is_word and (raw in _NAMES or raw.isdigit() or raw[1:].islower()):
        # The common case.
        word = raw.lower()
        if word not in STOP_WORDS or raw in _NAMES:
            yield stem(word)[:LONGEST]
        return
    raw = _THOUSANDS.sub("", letter_folding.visible(raw))
    if _INITIALS.fullmatch(raw):
        raw = raw.replace(".", "")
    for piece in raw.split("."):
        if not _NEGATIONS.fullmatch(piece):
            yield from _compound(piece, language)


def _compound(piece: str, language: int) -> Iterator[str]:
    """The parts of *wi-fi* or *readFile*, and the whole when there are two or three."""
    piece = _ELISIONS.sub("", _CLITICS.sub("", piece))
    if language != ENGLISH_RULES:
        piece = language_terms.without_elision(language, piece)
    if any(mark in piece for mark in _APOSTROPHES):
        piece = "".join(letter for letter in piece if letter not in _APOSTROPHES)
    parts = [part for part in _NOT_WORD.split(piece) if part]
    if len(piece) <= LONGEST:
        parts = [hump for part in parts for hump in _HUMPS.split(part)]
    whole = 1 < len(parts) <= 3 and len(piece) <= LONGEST and piece.isascii()
    for at, part in enumerate(parts):
        if not (whole and at == 0 and len(part) == 1 and part.isalpha()):
            yield from _word(part, language)
    if whole:
        yield from _word("".join(parts), language)


def _word(part: str, language: int) -> Iterator[str]:
    if language != ENGLISH_RULES:
        yield from language_terms.terms(language, part)
        return
    folded = letter_folding.fold(part)
    if folded.isascii() and folded.isalnum():
        if folded not in STOP_WORDS:
            yield stem(folded)[:LONGEST]
        return
    # Folding may produce non-letters, such as the slash in the sign for one half.
    for run in _NOT_WORD.split(folded):
        at = 0
        for unspaced in letter_folding.UNSPACED.finditer(run):
            yield from _plain(run[at : unspaced.start()])
            yield from _pairs(unspaced.group())
            at = unspaced.end()
        yield from _plain(run[at:])


def _plain(run: str) -> Iterator[str]:
    """A term of a script that separates words; marks alone are none."""
    if _LETTER.search(run) and run not in STOP_WORDS:
        yield stem(letter_folding.without_article(run))[:LONGEST]


def _pairs(run: str) -> Iterator[str]:
    return (one + other for one, other in pairwise(run)) if len(run) > 1 else iter((run,))
