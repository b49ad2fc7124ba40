"""RTF: paragraphs and rows of tables, without control words, pictures and embedded objects."""

from collections.abc import Iterator
from itertools import groupby

from striprtf import striprtf

from holdfast.core.text import plain
from holdfast.documents.parse import tables, texts
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable


def read(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """No title, and the one page of an RTF file."""
    # The format is ASCII; what is not is kept byte for byte until the code page of the file is known.
    return None, [Page(1, tuple(blocks(texts.content(path, limits.text_bytes).decode("latin-1"))))]


def blocks(source: str) -> Iterator[TextBlock]:
    """The paragraphs and rows of RTF."""
    # The library looks for links with a pattern that takes quadratic time; nobody reads their targets here.
    source = source.replace("\\fldinst", "\\fldtype")
    text = plain(_paired(striprtf.rtf_to_text(source, errors="replace")))
    lines = (line.strip() for line in text.replace("\r", "\n").split("\n"))
    for is_table, group in groupby(filter(None, lines), _is_row):
        if is_table:
            rows = [[cell.strip() for cell in line.rstrip("|").split("|")] for line in group]
            yield from (TextBlock(Role.ROW, row) for row in tables.row_texts(rows))
        else:
            yield from (TextBlock(Role.PARAGRAPH, line) for line in group)


def _is_row(line: str) -> bool:
    """True for a row of a table: every cell ends with a bar."""
    return line.endswith("|")


def _paired(text: str) -> str:
    """Characters outside the first plane are written as two halves, which are one character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
