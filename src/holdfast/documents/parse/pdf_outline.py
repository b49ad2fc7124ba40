"""The bookmarks of a PDF: its table of contents, and the headings that they name on its pages."""

import bisect
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pypdfium2 as pdfium  # type: ignore[import-untyped]

from holdfast.core.text import plain
from holdfast.documents.parse.records import (
    MOST_ENTRIES,
    MOST_ENTRY_TITLE,
    OutlineEntry,
    Page,
    Role,
    TextBlock,
)

MOST_DEPTH = 6
_HEADINGS = frozenset({Role.HEADING, Role.PARAGRAPH, Role.LIST})


def entries(document: pdfium.PdfDocument) -> tuple[OutlineEntry, ...]:
    """The bookmarks that lead to a page, in order, as far as they are not too many or too deep."""
    pages, result = len(document), []
    # PDFium's binding ends at a bookmark that it has seen, so that circles end.
    for bookmark in itertools.islice(document.get_toc(max_depth=MOST_DEPTH), MOST_ENTRIES):
        title = " ".join(plain(bookmark.get_title()[: 2 * MOST_ENTRY_TITLE]).split())[:MOST_ENTRY_TITLE]
        target = bookmark.get_dest()
        index = target.get_index() if target is not None else None
        if title and index is not None and 0 <= index < pages:
            result.append(OutlineEntry(bookmark.level + 1, title, index + 1))
    return tuple(result)


class Sections:
    """Which part of the outline a page belongs to."""

    def __init__(self, outline: Sequence[OutlineEntry]) -> None:
        self._on: dict[int, list[tuple[str, ...]]] = {}
        path: tuple[str, ...] = ()
        for entry in outline:
            path = (*path[: entry.level - 1], entry.title)
            self._on.setdefault(entry.page, []).append(path)
        self._pages = sorted(self._on)
        self._lasts = [self._on[page][-1] for page in self._pages]

    def placed(self, page: Page) -> Page:
        """As given, with the headings that the outline names, and the section that it begins in."""
        if not self._pages or not page.blocks:
            return page
        here = {_key(path[-1]): path for path in reversed(self._on.get(page.number, []))}
        blocks = tuple(_agreed(block, here) for block in page.blocks)
        section = self._before(page.number)
        if here and not any(block.role is Role.HEADING for block in blocks):
            section = _common(self._on[page.number])
        return replace(page, blocks=blocks, section=section)

    def _before(self, page: int) -> tuple[str, ...]:
        """The last entry of an earlier page."""
        at = bisect.bisect_left(self._pages, page)
        return self._lasts[at - 1] if at else ()


def _agreed(block: TextBlock, here: Mapping[str, tuple[str, ...]]) -> TextBlock:
    """The block as a heading of the level that the outline gives it; as it is if the outline has none."""
    if not here or block.role not in _HEADINGS or len(block.text) > 2 * MOST_ENTRY_TITLE:
        return block
    path = here.get(_key(block.text))
    return block if path is None else TextBlock(Role.HEADING, block.text, min(len(path), 6))


def _key(text: str) -> str:
    """The letters and digits of a title, without the numbers before it."""
    marks = "".join(filter(str.isalnum, text.casefold()))
    return marks.lstrip("0123456789") or marks


def _common(paths: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The part that all paths begin with."""
    first, *rest = paths
    for other in rest:
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, other, strict=False))
        first = tuple(one for one, _ in same)
    return first
