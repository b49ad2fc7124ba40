"""The outline of a document: its headings with the chunks below each, or else what stands in for headings.

Headings are the author's own outline, and an edit of the text below them leaves them as they are. A document
that has hardly any is outlined by the titles of its tree of summaries, if there is one, or by the sentences
that its chunks begin with. Pure functions, linear in the size of the document.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from holdfast.core.text import plain
from holdfast.providers import extractive
from holdfast.store.derived.outlines import OutlineChunk, OutlineParts

MOST_TITLE = 120
# Fewer headings than this are no outline: often they are the title alone.
FEWEST_HEADINGS = 2
# What is compared of a line, to tell whether it is a heading.
MOST_COMPARED = 200
# Bookmarks may be nested without end.
MOST_DEPTH = 6
DASH = " \N{EN DASH} "
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """A line of an outline: its title, its depth from 1 on, and the chunks `first` to `last` below it."""

    title: str
    depth: int
    first: int
    last: int


def of_document(parts: OutlineParts) -> list[OutlineLine]:
    """The outline, in the order of the document; empty for a document without text."""
    if not parts.chunks:
        return []
    lines = _of_headings(parts)
    if len(lines) >= FEWEST_HEADINGS:
        return lines
    if len(parts.summaries) > 1:
        return [OutlineLine(short(each.title), 1, each.first, each.last) for each in parts.summaries]
    return list(_of_sentences(parts.chunks)) or lines


def fitted(lines: Sequence[OutlineLine], most: int) -> list[OutlineLine]:
    """The outline in at most `most` lines: without its deepest levels, then with neighbours as one line."""
    depth = max((line.depth for line in lines), default=1)
    while len(lines) > most and depth > 1:
        depth -= 1
        lines = [line for line in lines if line.depth <= depth]
    if len(lines) <= most:
        return list(lines)
    return [
        replace(group[0], title=span([line.title for line in group]), last=max(line.last for line in group))
        for group in divided(lines, most)
    ]


def divided(items: Sequence[T], parts: int) -> list[Sequence[T]]:
    """The items in at most so many runs of neighbours, of nearly equal length."""
    parts = min(parts, len(items))
    return [items[len(items) * n // parts : len(items) * (n + 1) // parts] for n in range(parts)]


def span(titles: Sequence[str]) -> str:
    """What several neighbours are called together."""
    if len(titles) == 1:
        return titles[0]
    half = (MOST_TITLE - len(DASH)) // 2
    return f"{short(titles[0], half)}{DASH}{short(titles[-1], half)}"


def short(text: str, most: int = MOST_TITLE) -> str:
    """The beginning of a text on one line, cut between words where it is too long."""
    line = plain(" ".join(text[: 4 * most].split()))
    if len(line) <= most:
        return line
    words = line[: most - 1].rsplit(" ", 1)[0].rstrip(" ,;:-")
    return f"{words or line[: most - 1]}…"


def _of_headings(parts: OutlineParts) -> list[OutlineLine]:
    entries = parts.entries or list(_entries(parts.chunks))
    entries = [(level, title, page) for level, title, page in entries if title.strip()]
    starts = _starts(parts.chunks, entries)
    lines: list[OutlineLine] = []
    open_lines: list[tuple[int, int]] = []  # the level and the number of each heading around the next one
    last = len(parts.chunks) - 1
    for (level, title, _page), (start, begins) in zip(entries, starts, strict=True):
        while open_lines and open_lines[-1][0] >= level:
            _close(lines, open_lines.pop()[1], start - 1 if begins else start)
        depth = min(len(open_lines) + 1, MOST_DEPTH)
        lines.append(OutlineLine(short(title), depth, start, last))
        open_lines.append((level, len(lines) - 1))
    return _without_root(lines)


def _close(lines: list[OutlineLine], at: int, last: int) -> None:
    lines[at] = replace(lines[at], last=max(lines[at].first, last))


def _without_root(lines: list[OutlineLine]) -> list[OutlineLine]:
    """The lines without a heading that all others are below: it is the title of the document."""
    while len(lines) > FEWEST_HEADINGS and sum(line.depth == 1 for line in lines) == 1:
        lines = [replace(line, depth=line.depth - 1) for line in lines[1:]]
    return lines


def _entries(chunks: Sequence[OutlineChunk]) -> Iterator[tuple[int, str, int]]:
    """The headings that chunks name, for a document without a table of contents."""
    above: tuple[str, ...] = ()
    for chunk in chunks:
        same = next(
            (at for at, pair in enumerate(zip(above, chunk.headings, strict=False)) if pair[0] != pair[1]),
            None,
        )
        shared = min(len(above), len(chunk.headings)) if same is None else same
        for depth in range(shared, len(chunk.headings)):
            yield depth + 1, chunk.headings[depth], chunk.page or 0
        above = chunk.headings


def _starts(
    chunks: Sequence[OutlineChunk], entries: Sequence[tuple[int, str, int]]
) -> list[tuple[int, bool]]:
    """For each entry the chunk in which it stands, never before that of the last one, and if it begins it."""
    standing: dict[str, list[int]] = {}
    openings = []
    for chunk in chunks:
        lines = [_compared(line) for line in chunk.text.splitlines()]
        openings.append(next((line for line in lines if line), ""))
        for line in {*lines, *map(_compared, chunk.headings)}:
            standing.setdefault(line, []).append(chunk.number)
    pages = [chunk.page or 0 for chunk in chunks]
    starts: list[tuple[int, bool]] = []
    reached = 0
    for _level, title, page in entries:
        numbers = standing.get(_compared(title), ())
        at = bisect_left(numbers, reached)
        if at < len(numbers):
            reached = numbers[at]
        elif page and pages[reached] < page:
            reached = min(bisect_left(pages, page, reached), len(chunks) - 1)
        starts.append((reached, openings[reached] == _compared(title)))
    return starts


def _compared(line: str) -> str:
    return " ".join(line[: 2 * MOST_COMPARED].strip("#*_= \t").split())[:MOST_COMPARED]


def _of_sentences(chunks: Sequence[OutlineChunk]) -> Iterator[OutlineLine]:
    for chunk in chunks:
        beginning = chunk.text[:2000]
        title = short(next(iter(extractive.sentences(beginning)), "") or beginning)
        if title:
            yield OutlineLine(title, 1, chunk.number, chunk.number)
