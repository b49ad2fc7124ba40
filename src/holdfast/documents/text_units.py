"""Splits text into units, which the chunker combines and never cuts.

A block that fits is one unit. A larger one is split into sentences, a larger sentence into lines, a larger
line into clauses and groups of words, and a run without any of them, such as base64, into fixed steps. The
split depends on the block alone, so that an edit elsewhere cannot move it.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from zlib import crc32

from holdfast.documents.parse.records import Role, TextBlock

# Ranks of the boundary before a unit, the best for a cut first. 1 to 6 are headings by level.
PARAGRAPH, SENTENCE, LINE, WORD, STEP, NEVER = 7, 8, 9, 10, 11, 12
# How much of a unit's beginning decides between boundaries of one rank: later edits move none.
DECIDING = 48

_ENDS = "\u3002\uff01\uff1f\uff0e\uff61\u061f\u06d4\u0964\u0965\u17d4\u104b"  # no space need follow these
_CLOSING = "\"')\\]\u201d\u2019\u00bb\u300d\u300f\uff09"
_SENTENCE = re.compile(rf"[.!?\u2026{_ENDS}][{_CLOSING}]*(?:\s+|(?<=[{_ENDS}\u300d\u300f\uff09]))")
_LINE = re.compile(r"\n+")
_WORD = re.compile(r"\s+|[,;:\u3001\uff0c\uff1b\uff1a\u060c]\s*")
_LADDER = ((_SENTENCE, SENTENCE), (_LINE, LINE), (_WORD, WORD))


def weigh(text: str) -> int:
    """The estimated tokens of a text, in eighths: a quarter token per ASCII character, more for others.

    An ideograph counts as one token, a Cyrillic, Arabic or Hebrew letter as five eighths. A real tokenizer
    runs at 4 MB/s and is exact for one model only. This is within about a sixth for English and German, and
    about a half for other scripts, which vary by model; code is estimated a third too low, columns of digits
    up to four times.
    """
    size = len(text)
    if text.isascii():
        return 2 * size
    return 2 * size + 3 * (len(text.encode("utf-8", "surrogatepass")) - size)


@dataclass(slots=True)
class Units:
    """The units of a text, as columns: `starts[i]` is the weight of all units before `i`.

    `ranks[i]` orders the boundaries before the units, the lowest the best for a cut. `paths[i]` are the
    headings above `i`, including itself if it is one.
    """

    texts: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    paths: list[tuple[str, ...]] = field(default_factory=list)
    headings: list[bool] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    _last: Role | None = None

    def add(self, block: TextBlock, path: tuple[str, ...], most: int) -> None:
        """Append the block, as units that weigh at most `most` each."""
        text, role = block.text, block.role
        if not text or text.isspace():
            return
        heading = role is Role.HEADING
        rank = max(1, min(block.level, 6)) if heading else PARAGRAPH
        gap = "\n" if role is self._last and (role is Role.ROW or role is Role.LIST) else "\n\n"
        weight = weigh(text)
        parts = [(text, weight, rank)]
        if weight > most:
            parts = []
            _split(text, most, rank, 1 if role is Role.CODE else 0, parts)
        self._append(parts, gap, path, heading)
        self._last = role

    def _append(
        self, parts: Sequence[tuple[str, int, int]], gap: str, path: tuple[str, ...], heading: bool
    ) -> None:
        texts, gaps, ranks, starts = self.texts, self.gaps, self.ranks, self.starts
        start = starts[-1]
        under = bool(self.headings) and self.headings[-1]
        for text, weight, rank in parts:
            texts.append(text)
            gaps.append(gap)
            # A heading is never left at the end of a chunk, and never split.
            best = NEVER if under else rank
            ranks.append(best << 32 | crc32(text[:DECIDING].encode("utf-8", "surrogatepass")))
            start += weight + 2 * len(gap)
            starts.append(start)
            gap, under = "", heading
        self.paths += [path] * len(parts)
        self.headings += [heading] * len(parts)

    def text(self, first: int, last: int) -> str:
        """The units `first` up to but not including `last`, as one text."""
        if last - first == 1:
            joined = self.texts[first]
        else:
            joined = "".join(
                chain.from_iterable(zip(self.gaps[first:last], self.texts[first:last], strict=True))
            )
        return joined.strip("\n").rstrip()

    def path(self, first: int, last: int) -> tuple[str, ...]:
        """The headings above the first text in this range."""
        while first + 1 < last and self.headings[first]:
            first += 1
        return self.paths[first]


def _split(text: str, most: int, rank: int, rung: int, parts: list[tuple[str, int, int]]) -> None:
    """Append the parts of a text too heavy for one unit, with weights and ranks."""
    if rung == len(_LADDER):
        _step(text, most, rank, parts)
        return
    pattern, inner = _LADDER[rung]
    is_ascii = text.isascii()
    start = 0
    for end in chain((match.end() for match in pattern.finditer(text)), (len(text),)):
        if end == start:
            continue
        part = text[start:end]
        weight = 2 * (end - start) if is_ascii else weigh(part)
        if inner == WORD and start and _gathered(part, weight, most, parts):
            pass
        elif weight <= most:
            parts.append((part, weight, rank))
        else:
            _split(part, most, rank, rung + 1, parts)
        start, rank = end, inner


def _gathered(part: str, weight: int, most: int, parts: list[tuple[str, int, int]]) -> bool:
    """True if a word was added to the group before it: single words would make too many small units."""
    text, had, rank = parts[-1]
    if had + weight > most // 4:
        return False
    parts[-1] = (text + part, had + weight, rank)
    return True


def _step(text: str, most: int, rank: int, parts: list[tuple[str, int, int]]) -> None:
    """Split a run without boundaries into equal steps, never between a character and its marks."""
    size = max(1, len(text) * most // max(1, weigh(text)) // 2)
    start = 0
    while start < len(text):
        end = min(start + size, len(text))
        while end < len(text) and end - start < 2 * size and _binds(text[end]):
            end += 1
        part = text[start:end]
        parts.append((part, weigh(part), STEP if start else rank))
        start = end


def _binds(character: str) -> bool:
    """True for characters attached to the previous one: combining marks, joiners, variation selectors."""
    return unicodedata.combining(character) != 0 or unicodedata.category(character) in {"Mn", "Me", "Cf"}
