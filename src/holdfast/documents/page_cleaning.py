"""What a user has left out of pages before they are cut: page numbers, repeated lines, code, tables.

Only the first and last lines of a page count as its edges. A line is repeated if it stands at the same edge
of at least three pages and of half of those that are read together, numbers in it apart.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from holdfast.documents.parse.records import Page, Role, TextBlock

CODE, PAGE_NUMBERS, REPEATED_HEADERS, TABLES = "code", "page_numbers", "repeated_headers", "tables"
ALL = (CODE, PAGE_NUMBERS, REPEATED_HEADERS, TABLES)
# Lines at each edge of a page.
EDGE = 2
LEAST_PAGES = 3
LONGEST_LINE = 200
LONGEST_NUMBER = 24
_WORDS = frozenset({"page", "seite", "p", "of", "von", "s", "pagina", "página", "de"})


def cleaned(pages: Sequence[Page], drop: Sequence[str]) -> list[Page]:
    """The pages without what `drop` names."""
    roles = ({Role.CODE} if CODE in drop else set()) | ({Role.ROW} if TABLES in drop else set())
    pages = [_without_roles(page, roles) for page in pages] if roles else list(pages)
    if PAGE_NUMBERS in drop:
        pages = [_trimmed(page, _is_page_number) for page in pages]
    if REPEATED_HEADERS in drop:
        repeated = _repeated(pages)
        pages = [_trimmed(page, lambda line: _mask(line) in repeated) for page in pages]
    return pages


def _without_roles(page: Page, roles: AbstractSet[Role]) -> Page:
    return replace(page, blocks=tuple(block for block in page.blocks if block.role not in roles))


def _is_page_number(line: str) -> bool:
    """True for 7, - 7 -, 7/12, Page 7 of 12 and the like."""
    if len(line) > LONGEST_NUMBER:
        return False
    words = "".join(each if each.isalnum() else " " for each in line).lower().split()
    numbers = sum(word.isdecimal() for word in words)
    return 1 <= numbers <= 2 and all(word.isdecimal() or word in _WORDS for word in words)


def _mask(line: str) -> str:
    return "".join("#" if each.isdecimal() else each for each in line[:LONGEST_LINE].strip().lower())


def _edges(page: Page) -> list[str]:
    """The lines at the top and at the bottom of a page."""
    top = [line for block in page.blocks[:EDGE] for line in block.text.split("\n", EDGE)[:EDGE]][:EDGE]
    bottom = [line for block in page.blocks[-EDGE:] for line in block.text.rsplit("\n", EDGE)[-EDGE:]][-EDGE:]
    return [*top, *bottom]


def _repeated(pages: Sequence[Page]) -> frozenset[str]:
    counts = Counter(mask for page in pages for mask in {_mask(line) for line in _edges(page)} if mask)
    least = max(LEAST_PAGES, (len(pages) + 1) // 2)
    return frozenset(mask for mask, number in counts.items() if number >= least)


def _trimmed(page: Page, drops: Callable[[str], bool]) -> Page:
    """A page without such lines at its edges."""
    blocks = list(page.blocks)
    for _ in range(EDGE):
        if blocks and drops(blocks[0].text.split("\n", 1)[0].strip()):
            blocks[:1] = _rest(blocks[0], blocks[0].text.partition("\n")[2])
        if blocks and drops(blocks[-1].text.rsplit("\n", 1)[-1].strip()):
            blocks[-1:] = _rest(blocks[-1], blocks[-1].text.rpartition("\n")[0])
    return (
        page
        if len(blocks) == len(page.blocks) and tuple(blocks) == page.blocks
        else replace(page, blocks=tuple(blocks))
    )


def _rest(block: TextBlock, text: str) -> list[TextBlock]:
    return [replace(block, text=text)] if text.strip() else []
