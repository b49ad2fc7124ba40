"""Plain text and Markdown, in time and memory linear in their size."""

import contextlib
import re

from holdfast.core.errors import WorkError
from holdfast.documents.parse import encodings, front_matter, tables
from holdfast.documents.parse.records import Page, Role, TextBlock
from holdfast.documents.parse.source import Readable

BEGINNING = 64 * 1024
_BLANK = re.compile(r"\n[^\S\n]*\n\s*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")


def load(path: Readable, limit: int, declared: str | None = None) -> str:
    """The decoded text of a file of at most `limit` bytes."""
    return encodings.decode(content(path, limit), declared)


def content(path: Readable, limit: int) -> bytes:
    """The bytes of a file, at most `limit`."""
    with path.open("rb") as file:
        size = path.stat().st_size
        # Reading `limit` bytes would allocate as many, however small the file.
        data = file.read(min(size, limit) + 1)
    if len(data) > limit:
        raise WorkError(f"the text is larger than the limit of {limit:,} bytes; split it", code="too_large")
    return data


def beginning(path: Readable, size: int = BEGINNING) -> str:
    """The decoded text of the first `size` bytes of a file, without a partial character at the end."""
    with path.open("rb") as file:
        data = file.read(size)
    if len(data) == size:
        data = data[: data.rfind(b"\n") + 1] or data
    for spare in range(4):
        with contextlib.suppress(UnicodeDecodeError):
            data[: len(data) - spare].decode("utf-8")
            return encodings.decode(data[: len(data) - spare])
    return encodings.decode(data)


def plain_pages(text: str) -> list[Page]:
    """Paragraphs between blank lines; a form feed starts a new page."""
    pages = (_paragraphs(page) for page in text.split("\f"))
    return [Page(number, blocks) for number, blocks in enumerate(pages, start=1)]


def _paragraphs(text: str) -> tuple[TextBlock, ...]:
    text = "\n".join(map(str.rstrip, text.strip("\n").split("\n"))).rstrip()
    return tuple(TextBlock(Role.PARAGRAPH, part) for part in _BLANK.split(text) if part.strip())


def markdown_title(blocks: tuple[TextBlock, ...]) -> str | None:
    """The first heading of the highest level."""
    headings = [block for block in blocks if block.role is Role.HEADING]
    return min(headings, key=lambda block: block.level).text if headings else None


def markdown_pages(text: str) -> list[Page]:
    """One page with the blocks of the Markdown, without its front matter. Inline markup stays as written."""
    _properties, body = front_matter.split(text)
    return [Page(1, tuple(_Markdown(body.split("\n")).blocks()))]


def markdown_cell(text: str) -> tuple[TextBlock, ...]:
    """The blocks of Markdown that is a part of something, and has no front matter."""
    return tuple(_Markdown(text.split("\n")).blocks())


class _Markdown:
    """One pass over the lines; `_held` are the lines of the current paragraph or item."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._found: list[TextBlock] = []
        self._held: list[str] = []
        self._role = Role.PARAGRAPH

    def blocks(self) -> list[TextBlock]:
        """All blocks in order."""
        self._front_matter()
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if not line or line.isspace():
                self._end()
            elif not self._special(line):
                self._held.append(line.rstrip())
        self._end()
        return self._found

    def _special(self, line: str) -> bool:
        """True if the line does not continue a paragraph, and has been processed."""
        first = line.lstrip(" \t")[:1]
        if first == "#" and (heading := _heading(line.strip())):
            self._end()
            self._add(Role.HEADING, heading[1], heading[0])
        elif first in "`~" and (fence := _FENCE.match(line)):
            self._end()
            self._fenced(line, fence[1])
        elif first in "=-" and self._held and self._role is Role.PARAGRAPH and _UNDERLINE.match(line):
            text = " ".join(held.strip() for held in self._held)
            self._held = []
            self._add(Role.HEADING, text, 1 if "=" in line else 2)
        elif first in "-*_" and _is_rule(line):
            self._end()
        elif first in "-*+0123456789" and _ITEM.match(line):
            self._end()
            self._role = Role.LIST
            self._held.append(line.rstrip())
        elif "|" in line and not self._held and self._ruled():
            self._table(line)
        else:
            return False
        return True

    def _ruled(self) -> bool:
        return self._at < len(self._lines) and _is_table_rule(self._lines[self._at])

    def _end(self) -> None:
        if self._held:
            self._add(self._role, "\n".join(self._held), 0)
        self._held = []
        self._role = Role.PARAGRAPH

    def _add(self, role: Role, text: str, level: int) -> None:
        if text.strip():
            self._found.append(TextBlock(role, text if role is Role.CODE else text.strip(), level))

    def _fenced(self, opening: str, mark: str) -> None:
        taken = [opening.rstrip()]
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            taken.append(line.rstrip())
            if line.strip().startswith(mark) and not line.strip().strip(mark[0]):
                break
        self._add(Role.CODE, "\n".join(taken), 0)

    def _front_matter(self) -> None:
        if self._lines and self._lines[0].rstrip() == "---":
            for end in range(1, min(len(self._lines), 200)):
                if self._lines[end].rstrip() in {"---", "..."}:
                    self._add(Role.CODE, "\n".join(self._lines[1:end]), 0)
                    self._at = end + 1
                    return

    def _table(self, header: str) -> None:
        self._at += 1
        rows = [_cells(header)]
        while self._at < len(self._lines) and "|" in self._lines[self._at]:
            rows.append(_cells(self._lines[self._at]))
            self._at += 1
        for text in tables.row_texts(rows, headed=True):
            self._add(Role.ROW, text, 0)


# By hand, because a pattern with two adjacent runs of spaces backtracks over every split.


def _heading(line: str) -> tuple[int, str] | None:
    """Level and text of a heading with leading hashes, without closing ones."""
    text = line.lstrip("#")
    level = len(line) - len(text)
    if level > 6 or (text and text[0] not in " \t"):
        return None
    text = text.strip(" \t")
    opened = text.rstrip("#")
    if opened and opened[-1] in " \t":
        text = opened
    return level, text.strip()


def _is_rule(line: str) -> bool:
    """True for three or more of one mark, with only spaces between."""
    marks = line.replace(" ", "").replace("\t", "")
    indent = len(line) - len(line.lstrip(" "))
    return len(marks) > 2 and indent < 4 and line[indent] == marks[0] and not marks.strip(marks[0])


def _is_table_rule(line: str) -> bool:
    """True for the line between the header and the rows of a table, such as `|---|:-:|`."""
    cells = line.strip(" \t").removeprefix("|").removesuffix("|").split("|")
    dashes = (cell.strip(" \t").removeprefix(":").removesuffix(":") for cell in cells)
    return all(each and not each.strip("-") for each in dashes)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
