"""The part of a chunk that best shows the match, with the positions of the query's words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from holdfast.core.languages import ENGLISH_RULES
from holdfast.search import tokenizer

WIDTH = 240
_READ = 20_000  # characters of a chunk that are searched
_ENDS = ".!?。！？\n"  # noqa: RUF001 - full-width signs end sentences too


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text from a chunk, starting at character `start`; `marks` are (from, to) within the snippet."""

    text: str
    start: int
    marks: tuple[tuple[int, int], ...]


def cut(
    text: str, weights: Mapping[str, float], width: int = WIDTH, language: int = ENGLISH_RULES
) -> Snippet:
    """The best part of about `width` characters: the most weight of different words, then the earliest."""
    matches = list(tokenizer.matches(text[:_READ], weights.keys(), language))
    first, last = _best(matches, weights, width)
    if first is None:
        start, end = 0, min(len(text), width)
    else:
        room = max(0, width - (matches[last][1] - matches[first][0]))
        start = max(0, matches[first][0] - room // 3)
        end = min(len(text), max(start + width, matches[last][1]))
        start = max(0, min(start, end - width))
        start = _sentence(text, start, matches[first][0])
    start, end = _at_words(text, start, end)
    marks = tuple((at - start, to - start) for at, to, _ in matches if at >= start and to <= end)
    return Snippet(text[start:end], start, marks)


def marks(
    text: str, weights: Mapping[str, float], language: int = ENGLISH_RULES
) -> tuple[tuple[int, int], ...]:
    """Where the words are in the whole text, as far as it is searched."""
    return tuple((start, end) for start, end, _ in tokenizer.matches(text[:_READ], weights.keys(), language))


def _best(
    matches: Sequence[tuple[int, int, AbstractSet[str]]], weights: Mapping[str, float], width: int
) -> tuple[int | None, int]:
    """The first and last match of the window with the most weight; a repeated word adds a tenth."""
    best: tuple[float, int | None, int] = (0.0, None, 0)
    seen: Counter[str] = Counter()
    worth, end = 0.0, 0  # of the window from `first` up to but not including `end`
    for first, (start, _, terms) in enumerate(matches):
        while end < len(matches) and (end == first or matches[end][1] - start <= width):
            for term in sorted(matches[end][2]):
                worth += weights[term] * (0.1 if seen[term] else 1.0)
                seen[term] += 1
            end += 1
        if worth > best[0] + 1e-9:
            best = (worth, first, end - 1)
        for term in sorted(terms):
            seen[term] -= 1
            worth -= weights[term] * (0.1 if seen[term] else 1.0)
    return best[1], best[2]


def _sentence(text: str, start: int, match: int) -> int:
    """The start of a sentence shortly after `start`, if one begins before the match."""
    ends = [at for at in range(start, match) if text[at] in _ENDS and text[at + 1 : at + 2].isspace()]
    return ends[0] + 2 if ends else start


def _at_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The same range without a cut word at either end, unless the word is longer than twenty letters."""
    if start > 0 and not text[start - 1].isspace():
        ahead = next((at for at in range(start, min(start + 20, end)) if text[at].isspace()), start)
        start = ahead + 1 if ahead > start else start
    if end < len(text) and not text[end].isspace():
        back = next((at for at in range(end, max(end - 20, start), -1) if text[at].isspace()), end)
        end = back
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
