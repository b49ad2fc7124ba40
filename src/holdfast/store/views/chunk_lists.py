"""The chunks of a published document as people see them: with their originals, and those switched off.

Searches and jobs read `holdfast_chunks`, where a chunk that is switched off is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Row, bindparam, func, select

from holdfast.core import chunk_edits
from holdfast.core.chunk_edits import EDIT
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import chunks
from holdfast.store.library import chunk_edits as edit_rows
from holdfast.store.library.chunk_edits import AppliedEdit, ChunkEdit, EditedVersion
from holdfast.store.library.documents import Document
from holdfast.store.views.reads import VISIBLE_CHUNKS


@dataclass(frozen=True, slots=True)
class ListedChunk:
    """A chunk of the published version. (`slice`, `position`) orders a document; `digest` is of `original`.

    `context` is that of its edit, None for a chunk without one. One that is switched off has no `call_key`.
    """

    slice: int
    position: int
    page: int | None
    text: str
    original: str
    digest: str
    context: str | None
    enabled: bool = True
    call_key: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_edited(self) -> bool:
        """True if a person replaced its text."""
        return self.text != self.original

    @property
    def headings(self) -> list[str]:
        """The headings above it, outermost first; not known of a chunk that is switched off."""
        headings = self.data.get("headings")
        return [str(each) for each in headings] if isinstance(headings, list) else []

    @property
    def fields(self) -> dict[str, Any]:
        """What the steps of a flow made of it, by name."""
        parts = (self.data.get(name) for name in ("other_fields", "fields"))
        return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}

    @property
    def id(self) -> str:
        """Names the chunk as long as the document has its text; where that is helps to find it."""
        return f"{self.digest}.{self.slice}.{self.position}"


@dataclass(frozen=True, slots=True)
class ChunkList:
    """Some chunks of one version, in order."""

    generation: int
    chunks: Sequence[ListedChunk]


def listed(
    db: Database,
    document: Document,
    *,
    after: tuple[int, int] = (-1, -1),
    limit: int,
    with_disabled: bool = True,
) -> ChunkList | None:
    """The chunks after (slice, position) `after`; None if nothing is published."""

    def body(tx: Tx) -> ChunkList | None:
        version = edit_rows.published(tx, document.head_id or 0)
        if version is None:
            return None
        off = [each for each in version.applied if not each.edit.enabled] if with_disabled else []
        off = [each for each in off if (each.slice, each.position) > after][:limit]
        where = {"head_id": document.head_id, "generation": version.generation, "limit": limit}
        on = tx.all(VISIBLE_CHUNKS, where | {"slice": after[0], "position": after[1]})
        merged: list[Row[Any] | AppliedEdit] = [*on, *off]
        merged.sort(key=lambda each: (each.slice, each.position))
        return ChunkList(version.generation, _listed(tx, document, merged[:limit]))

    return db.read(body)


def _listed(tx: Tx, document: Document, chunk_rows: Sequence[Row[Any] | AppliedEdit]) -> list[ListedChunk]:
    keys = [_key(each) for each in chunk_rows]
    digests = {key[0] for key in keys if key is not None}
    edits = edit_rows.some_of(tx, document.tenant, document.id, digests) if digests else []
    by_key = {(edit.digest, edit.context): edit for edit in edits}
    shown = (_one(each, key, by_key) for each, key in zip(chunk_rows, keys, strict=True))
    return [each for each in shown if each is not None]


def _key(row: Row[Any] | AppliedEdit) -> tuple[str, str] | None:
    """The key of the edit that the chunk has."""
    if isinstance(row, AppliedEdit):
        return row.edit.key
    edit = (row.data or {}).get(EDIT)
    return None if edit is None else (edit[0], edit[1])


def _one(
    row: Row[Any] | AppliedEdit,
    key: tuple[str, str] | None,
    edits: Mapping[tuple[str, str], ChunkEdit],
) -> ListedChunk | None:
    edit = edits.get(key) if key is not None else None
    if isinstance(row, AppliedEdit):
        if edit is None:
            return None
        where = row.slice, row.position, row.page
        return ListedChunk(*where, edit.original, edit.original, edit.digest, edit.context, enabled=False)
    original = row.text if edit is None else edit.original
    digest = key[0] if key is not None else chunk_edits.text_digest(original)
    return ListedChunk(
        row.slice,
        row.position,
        row.page,
        row.text,
        original,
        digest,
        key[1] if key is not None else None,
        call_key=row.call_key,
        data=row.data or {},
    )


SAME_TEXT = select(func.count()).where(
    chunks.c.head_id == bindparam("head_id"),
    chunks.c.generation == bindparam("generation"),
    chunks.c.text == bindparam("text"),
)
OF_PAGE = (
    select(chunks.c.slice, chunks.c.position, chunks.c.text, chunks.c.page, chunks.c.call_key, chunks.c.data)
    .where(
        chunks.c.head_id == bindparam("head_id"),
        chunks.c.generation == bindparam("generation"),
        chunks.c.slice == bindparam("slice"),
        chunks.c.page == bindparam("page"),
    )
    .order_by(chunks.c.position)
)


def context_of(db: Database, document: Document, chunk: ListedChunk) -> str:
    """The context for an edit of the chunk: its own where the document has its text several times."""
    if chunk.context is not None:
        return chunk.context

    def body(tx: Tx) -> str:
        version = edit_rows.published(tx, document.head_id or 0)
        if version is None:
            return chunk_edits.ANYWHERE
        where = {"head_id": document.head_id, "generation": version.generation}
        same = tx.execute(SAME_TEXT, where | {"text": chunk.original}).scalar_one()
        same += sum(each.edit.digest == chunk.digest for each in version.applied)
        if same <= 1:
            return chunk_edits.ANYWHERE
        page = _page(tx, document, version, chunk)
        at = next((at for at, each in enumerate(page) if each.position == chunk.position), None)
        return (
            chunk_edits.ANYWHERE
            if at is None
            else chunk_edits.contexts([_Original(each) for each in page])[at]
        )

    return db.read(body)


def _page(tx: Tx, document: Document, version: EditedVersion, chunk: ListedChunk) -> list[ListedChunk]:
    """The chunks of a page in order, with those that are switched off."""
    where = {"head_id": document.head_id, "generation": version.generation, "slice": chunk.slice}
    off = [
        each
        for each in version.applied
        if not each.edit.enabled and (each.slice, each.page) == (chunk.slice, chunk.page)
    ]
    merged: list[Row[Any] | AppliedEdit] = [*tx.all(OF_PAGE, where | {"page": chunk.page}), *off]
    return _listed(tx, document, sorted(merged, key=lambda each: each.position))


@dataclass(frozen=True, slots=True)
class _Original:
    """A chunk as it was cut."""

    chunk: ListedChunk

    @property
    def text(self) -> str:
        return self.chunk.original

    @property
    def page(self) -> int | None:
        return self.chunk.page
