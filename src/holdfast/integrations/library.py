"""A library of documents as other programs use it: to search, to read, and to ask.

`LocalLibrary` is over an installation in this process, `RemoteLibrary` over the HTTP API. Both return the
same records, with links to the web UI.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import quote

# Characters of a document that are read at once.
MOST_TEXT = 200_000
# Documents of a page of a list.
LISTED = 100


@dataclass(frozen=True, slots=True)
class LibraryHit:
    """A passage that answers. `url` opens it in the web UI; `score` is the reranker's where one was asked."""

    document_id: str
    title: str
    collection: str
    page: int | None
    text: str
    score: float
    chunk: str | None
    url: str


@dataclass(frozen=True, slots=True)
class LibraryCollection:
    """A collection that can be searched."""

    id: str
    title: str


@dataclass(frozen=True, slots=True)
class LibraryDocument:
    """A document with a part of its text; `next_offset` is where the next part begins, None at the end."""

    id: str
    title: str
    collection: str
    generation: int
    url: str
    text: str = ""
    next_offset: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """An answer as the API has it: sentences with their support, sources with links, cost."""

    fields: Mapping[str, Any]


class Library(Protocol):
    """What other programs may do."""

    def collections(self) -> list[LibraryCollection]:
        """All collections."""

    def search(
        self,
        query: str,
        collections: Sequence[str] = (),
        k: int = 10,
        filter_: Mapping[str, Any] | None = None,
        rerank: bool | str | None = None,
    ) -> list[LibraryHit]:
        """The best passages of these collections; of all, if none is named."""

    def read(self, document_id: str, offset: int = 0, most: int = MOST_TEXT) -> LibraryDocument:
        """The document with its published text from `offset` on."""

    def documents(self, collection: str, cursor: str | None) -> tuple[list[LibraryDocument], str | None]:
        """A page of the documents of a collection, without text, and the cursor of the next one."""

    def ask(self, question: str, collections: Sequence[str] = (), k: int = 8) -> LibraryAnswer:
        """An answer with checked citations. May cost money."""


def document_url(base: str, document_id: str, chunk: str | None = None) -> str:
    """Where the web UI shows a document, or one of its passages (`DOCUMENT@SLICE.POSITION`)."""
    address = f"{base}/documents/{quote(document_id, safe='')}"
    position = (chunk or "").partition("@")[2]
    return f"{address}?at={position}#c-{position.replace('.', '-')}" if position else address


def hit_url(base: str, document_id: str, chunk: str | None, collection: str, node: str | None) -> str:
    """Where the web UI shows a hit: a passage, or a summary in its tree."""
    if node is not None:
        return f"{base}/collections/{quote(collection, safe='')}/tree?node={quote(node, safe='')}"
    return document_url(base, document_id, chunk)


class TextWindow:
    """A part of a text that comes in pieces: what lies between two positions."""

    def __init__(self, offset: int, most: int) -> None:
        self._offset, self._end = offset, offset + most
        self._at = 0
        self._parts: list[str] = []

    @property
    def is_full(self) -> bool:
        """True when the text goes on behind the part."""
        return self._at > self._end

    @property
    def text(self) -> str:
        """The part so far."""
        return "".join(self._parts)

    @property
    def next_offset(self) -> int | None:
        """Where the next part begins; None if this one reached the end."""
        return self._end if self.is_full else None

    def add(self, piece: str) -> None:
        """The text goes on; pieces are set apart by an empty line."""
        piece = f"\n\n{piece}" if self._at else piece
        start = max(0, self._offset - self._at)
        self._parts.append(piece[start : max(start, self._end - self._at)])
        self._at += len(piece)
