"""Cuts pages into chunks whose boundaries are stable under edits.

Chunks are what is embedded and paid for, so cuts should not only be good but stay where they are when the
text is edited. Packing from the top of a section, as splitters do, moves every later cut when a paragraph is
inserted. Here no cut depends on distant text:

* Text is a sequence of units (`text_units`), and every boundary between two of them has a rank: heading
  before paragraph before sentence before line, and among equals a hash of the words that follow.
* A boundary is an *anchor* if none within the horizon on either side ranks better. That depends only on the
  surrounding text: after an edit, anchors farther away than the horizon stay.
* Text too long for one chunk is divided at its best anchor, recursively, until the parts fit. A part that is
  still too long and has no anchor inside is cut from its beginning, at the best boundary of each window; the
  anchor at its end limits the effect of any edit in it.

The price is that chunk sizes vary, from about a third of the maximum up. Each page is cut separately: no
chunk crosses a page, and a page that fits is one chunk.

The headings above a chunk are stored beside it, not in its text, unless they begin it. Repeating them in each
chunk of a section would help search a little, but a renamed heading would then cost its whole section, and
the same paragraph under two headings would be paid twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from holdfast.core.errors import BadRequestError, WorkError
from holdfast.documents import page_cleaning
from holdfast.documents.parse.records import Page, Role, TextBlock
from holdfast.documents.text_units import NEVER, Units, weigh

# Incremented whenever the same pages and options would give different chunks.
VERSION = 2
# Per slice. The smallest chunk size and the largest text would allow millions.
MOST_PIECES = 400_000
# How much of a heading is repeated beside each chunk under it; its own chunk has all of it.
LONGEST_HEADING = 200


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """How to cut. `size_tokens` is the maximum size of a chunk, estimated and including its overlap.

    `overlap` is how many tokens of a chunk are repeated at the start of the next (each edit then affects one
    chunk more). A `delimiter` always ends a chunk and is dropped; it is searched inside blocks, so one that
    contains a blank line never matches.
    """

    size_tokens: int = 256
    overlap: int = 0
    delimiter: str = ""
    # What is left out of the pages, by the names of `page_cleaning`.
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject invalid options."""
        if not 16 <= self.size_tokens <= 100_000 or not 0 <= self.overlap <= self.size_tokens // 2:
            raise BadRequestError(
                "the chunk size must be 16 to 100,000 tokens, and the overlap at most half of it",
                code="bad_chunk_options",
            )


@dataclass(frozen=True, slots=True)
class ChunkText:
    """One chunk's text, its page and the headings above it, outermost first."""

    text: str
    page: int
    headings: tuple[str, ...]


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has for an embedding model, at least 1; see `text_units.weigh`."""
    return max(1, -(-weigh(text) // 8))


def cut(pages: Sequence[Page], options: ChunkOptions) -> list[ChunkText]:
    """The chunks of the pages in reading order; deterministic.

    Raises `too_large` for pages that would give more than `MOST_PIECES`.
    """
    cutter = _Cutter(options)
    if options.drop:
        pages = page_cleaning.cleaned(pages, options.drop)
    pieces = (piece for page in pages for piece in cutter.page(page))
    taken = list(islice(pieces, MOST_PIECES))
    if next(pieces, None) is not None:
        raise WorkError(
            f"the text would give over {MOST_PIECES:,} chunks; split the document or raise the chunk size",
            code="too_large",
        )
    return taken


class _Cutter:
    """Cuts page after page; only headings carry over to the next. Weights as in `text_units`."""

    def __init__(self, options: ChunkOptions) -> None:
        self._options = options
        self._most = 8 * (options.size_tokens - options.overlap)
        self._horizon = self._most * 35 // 100
        self._least = self._most * 15 // 100
        self._path: tuple[tuple[int, str], ...] = ()

    def page(self, page: Page) -> Iterator[ChunkText]:
        for run in self._runs(page):
            before = ""
            for first, last in self._ranges(run):
                text = run.text(first, last)
                if text:
                    yield ChunkText(self._overlapped(before, text), page.number, run.path(first, last))
                    before = text

    def _runs(self, page: Page) -> Iterator[Units]:
        """A page's units, split at the delimiter."""
        run = Units()
        if page.section and tuple(text for _level, text in self._path)[: len(page.section)] != page.section:
            self._path = tuple(enumerate(map(_shortened, page.section), start=1))
        path = tuple(text for _level, text in self._path)
        delimiter = self._options.delimiter
        for block in page.blocks:
            if block.role is Role.HEADING:
                path = self._under(block)
            if not delimiter or delimiter not in block.text:
                run.add(block, path, self._horizon)
                continue
            first, *rest = block.text.split(delimiter)
            run.add(replace(block, text=first), path, self._horizon)
            for part in rest:
                yield run
                run = Units()
                run.add(replace(block, text=part), path, self._horizon)
        yield run

    def _under(self, heading: TextBlock) -> tuple[str, ...]:
        """The headings from here on, this one included."""
        above = tuple(entry for entry in self._path if entry[0] < heading.level)
        self._path = (*above, (heading.level, _shortened(heading.text)))
        return tuple(text for _level, text in self._path)

    def _ranges(self, run: Units) -> Iterator[tuple[int, int]]:
        end = len(run.texts)
        if end:
            fits = run.starts[end] <= self._most
            yield from self._divide(run, end, [] if fits else self._anchors(run))

    def _divide(self, run: Units, end: int, anchors: list[int]) -> Iterator[tuple[int, int]]:
        """A range that fits, as it is; otherwise divided at its best anchor, recursively.

        One anchor at a time: a chunk that an edit makes too long becomes two, not as many as it has anchors.
        Only anchors of equal rank are used all at once, because any edit could change which of them is in the
        middle. The parts wait in a list, because a long text could exceed Python's recursion limit.
        """
        ranks = [run.ranks[at] for at in anchors]
        before, behind, best = _tree(ranks)
        waiting = [(0, end, best, -1)]
        while waiting:
            first, last, best, above = waiting.pop()
            equal = best >= 0 and ranks[best] == above
            if not equal and run.starts[last] - run.starts[first] <= self._most:
                yield first, last
            elif best < 0:
                yield from self._windows(run, first, last)
            else:
                at = anchors[best]
                waiting.append((at, last, behind[best], ranks[best]))
                waiting.append((first, at, before[best], -1))

    def _anchors(self, run: Units) -> list[int]:
        """The boundaries better than all others within the horizon; of equals, the first."""
        starts, ranks, horizon = run.starts, run.ranks, self._horizon
        top = starts[-1] - self._least
        anchored = [False] * len(ranks)
        stack: list[int] = []
        for at in range(1, len(ranks)):
            rank, start = ranks[at], starts[at]
            if start < self._least or start > top or rank >> 32 == NEVER:
                continue
            while stack and ranks[stack[-1]] > rank:
                worse = stack.pop()
                if start - starts[worse] <= horizon:
                    anchored[worse] = False
            anchored[at] = not stack or start - starts[stack[-1]] > horizon
            stack.append(at)
        return [at for at, is_anchor in enumerate(anchored) if is_anchor]

    def _windows(self, run: Units, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The text between two anchors, cut from its beginning if too long for one chunk."""
        while run.starts[last] - run.starts[first] > self._most:
            at = self._best(run, first, last)
            yield first, at
            first = at
        yield first, last

    def _best(self, run: Units, first: int, last: int) -> int:
        """The best boundary that leaves neither too long a chunk nor a tiny one; of equals, the last."""
        starts, ranks = run.starts, run.ranks
        furthest = starts[first] + self._most
        nearest, top = starts[first] + self._least, starts[last] - self._least
        best, fallback = 0, first + 1
        for at in range(first + 1, last):
            if starts[at] > furthest:
                break
            fallback = at
            if nearest <= starts[at] <= top and (not best or ranks[at] <= ranks[best]):
                best = at
        return best or fallback

    def _overlapped(self, before: str, text: str) -> str:
        """The text, preceded by the last words of the previous chunk."""
        most = 8 * self._options.overlap
        if not most or not before:
            return text
        tail = before[-(most // 2) :]
        while weigh(tail) > most - 8:
            tail = tail[max(1, len(tail) // 8) :]
        if len(tail) < len(before):
            _torn, space, rest = tail.partition(" ")
            tail = rest if space else tail
        return f"{tail.strip()}\n\n{text}" if tail.strip() else text


def _shortened(heading: str) -> str:
    return heading if len(heading) <= LONGEST_HEADING else f"{heading[: LONGEST_HEADING - 1].rstrip()}…"


def _tree(ranks: Sequence[int]) -> tuple[list[int], list[int], int]:
    """The Cartesian tree of the ranks: for each index its left and right child (-1: none), and the root.

    Of equals the first is on top. Built in one pass: searching the best of each range anew would take
    quadratic time when ranks only rise.
    """
    before, behind = [-1] * len(ranks), [-1] * len(ranks)
    stack: list[int] = []
    for index, rank in enumerate(ranks):
        last = -1
        while stack and ranks[stack[-1]] > rank:
            last = stack.pop()
        before[index] = last
        if stack:
            behind[stack[-1]] = index
        stack.append(index)
    return before, behind, stack[0] if stack else -1
