"""Parsers of the user's own (HOLDFAST_PARSERS), run in the same child within the same limits.

A parser is any object with two methods, or a class of such, and needs nothing of Holdfast:

* `accepts(head, name)`: true for files that it reads, by their first bytes and their name;
* `read(file)`: the pages of an open file, each a list of blocks. A block is a text, or a pair or triple of
  its role (`heading`, `paragraph`, `list`, `row`, `code`), its text and, for a heading, its level.

A parser that needs a paid service has a third, `request(file)`: the request that is to be made for the file,
as a dict (`paid`), or None for a file that it reads by itself. Its `read(file, answer)` then gets the answer
as an open file, or None. `version` is its version: another one asks again, and is paid again.

It is asked before the formats that Holdfast knows. What it returns is checked as a stranger's would be.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO, Protocol

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse import paid
from holdfast.documents.parse.paid import PaidRequest
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable, answer_of

HEAD = 64 * 1024
# The name of the parser that comes with Holdfast, where a collection chooses.
OURS = "holdfast"
_MOST_LEVEL = 6


class OwnParser(Protocol):
    """What a parser of the user's own must be able to do."""

    def accepts(self, head: bytes, name: str) -> bool:
        """True for a file that it reads."""

    def read(self, file: BinaryIO) -> Iterable[Iterable[Any]]:
        """The pages of the file."""


def load(names: Sequence[str]) -> list[OwnParser]:
    """The parsers of these names, each `module:name`; ImportError that says which is wrong."""
    parsers: list[OwnParser] = []
    for each in names:
        module, _colon, name = each.partition(":")
        try:
            parser = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ImportError(f"HOLDFAST_PARSERS names {each!r}, which cannot be loaded: {error}") from error
        parser = parser() if isinstance(parser, type) else parser
        if not callable(getattr(parser, "accepts", None)) or not callable(getattr(parser, "read", None)):
            message = f"HOLDFAST_PARSERS names {each!r}, which has no methods accepts() and read()"
            raise ImportError(message)  # noqa: TRY004 (the setting is wrong, not a value)
        parsers.append(parser)
    return parsers


def accepting(parsers: Sequence[OwnParser], path: Readable, name: str) -> OwnParser | None:
    """The first parser that reads this file; None if none does."""
    if not parsers:
        return None
    with path.open("rb") as file:
        head = file.read(HEAD)
    return next((parser for parser in parsers if parser.accepts(head, name)), None)


def is_paid(parser: OwnParser) -> bool:
    """True for a parser that may need a paid service."""
    return callable(getattr(parser, "request", None))


def request_of(parser: Any, name: str, path: Readable, count_pages: Callable[[], int]) -> PaidRequest | None:
    """The paid request that a parser wants for a file; None if it reads the file by itself."""
    if not is_paid(parser):
        return None
    with path.open("rb") as file:
        value = parser.request(file)
    if value is None:
        return None
    known = isinstance(value, dict) and "pages" in value
    return paid.checked(name, getattr(parser, "version", "1"), value, 0 if known else count_pages())


def _read(parser: Any, file: BinaryIO, path: Readable) -> Iterable[Iterable[Any]]:
    """What a parser reads; one that may need a paid service gets its answer, or None."""
    if not is_paid(parser):
        return parser.read(file)  # type: ignore[no-any-return]  # checked by the caller, block by block
    answer = answer_of(path)
    return parser.read(file, None if answer is None else answer.open())  # type: ignore[no-any-return]


def pages(parser: OwnParser, path: Readable, limits: ParseLimits) -> list[Page]:
    """The pages that a parser reads from a file."""
    read: list[Page] = []
    with path.open("rb") as file:
        for number, blocks in enumerate(_read(parser, file, path), start=1):
            if number > limits.pages:
                raise WorkError(
                    f"the document has more than {limits.pages:,} pages; split it", code="too_many_pages"
                )
            if isinstance(blocks, str | bytes):
                raise TypeError("a page must be a list of blocks")
            read.append(Page(number, tuple(block for each in blocks if (block := _block(each)).text.strip())))
    return read


def _block(value: Any) -> TextBlock:
    if isinstance(value, str):
        return TextBlock(Role.PARAGRAPH, plain(value))
    role, text, *level = value
    at = int(level[0]) if level else 1
    role = Role(role)
    return TextBlock(role, plain(str(text)), max(1, min(at, _MOST_LEVEL)) if role is Role.HEADING else 0)
