"""The stretch of a chunk that shows best why it was found, and where in it the words of the query stand."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from holdfast.search import tokenizer

WIDTH = 240
_READ = 20_000  # characters of a chunk that are looked at
_ENDS = ".!?。！？\n"  # noqa: RUF001 - full-width signs end sentences too


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text from a chunk, beginning `start` characters into it; `marks` are (from, to) within the snippet."""

    text: str
    start: int
    marks: tuple[tuple[int, int], ...]


def cut(text: str, weights: Mapping[str, float], width: int = WIDTH) -> Snippet:
    """The best stretch of about `width` characters: most weight of different words, the earlier first."""
    found = list(tokenizer.places(text[:_READ], weights.keys()))
    first, last = _best(found, weights, width)
    if first is None:
        start, end = 0, min(len(text), width)
    else:
        room = max(0, width - (found[last][1] - found[first][0]))
        start = max(0, found[first][0] - room // 3)
        end = min(len(text), max(start + width, found[last][1]))
        start = max(0, min(start, end - width))
        start = _sentence(text, start, found[first][0])
    start, end = _at_words(text, start, end)
    marks = tuple((at - start, to - start) for at, to, _ in found if at >= start and to <= end)
    return Snippet(text[start:end], start, marks)


def _best(
    found: Sequence[tuple[int, int, AbstractSet[str]]], weights: Mapping[str, float], width: int
) -> tuple[int | None, int]:
    """The first and last match of the window that is worth most; a repeated word adds a tenth."""
    best: tuple[float, int | None, int] = (0.0, None, 0)
    seen: Counter[str] = Counter()
    worth, end = 0.0, 0  # of the window from `first` up to but not including `end`
    for first, (start, _, terms) in enumerate(found):
        while end < len(found) and (end == first or found[end][1] - start <= width):
            for term in sorted(found[end][2]):
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
    """The same stretch without a torn word at either side, unless the word is longer than twenty letters."""
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
