"""The rows of edits: what people changed in the chunks of documents. `document_edits` changes them.

An edit belongs to a text of its document (see `core.chunk_edits`). Which of the edits a version has is in the
results of the version's slices: so one that found no text is known as such.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import chunk_edits
from holdfast.core.chunk_edits import EDITS, EditMark
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import chunk_edits as table
from holdfast.store.base.schema import heads, runs
from holdfast.store.protocol import slices

AT_ONCE = 200
# The mark of an edit that was taken back. Its row stays until a version without it is published: readers of
# the version before still need the original.
NO_EDIT = ""


@dataclass(frozen=True, slots=True)
class ChunkEdit:
    """An edit of a chunk. `text` is None if only `enabled` was changed; `original` is the document's text."""

    digest: str
    context: str
    page: int | None
    original: str
    text: str | None
    enabled: bool
    actor: str = ""
    updated_at: float = 0.0

    @property
    def mark(self) -> EditMark:
        """The edit without its texts."""
        mark = NO_EDIT if self.changes_nothing else chunk_edits.mark_of(self.text, enabled=self.enabled)
        return EditMark(self.digest, self.context, self.enabled, mark)

    @property
    def changes_nothing(self) -> bool:
        """True for the original text, switched on: it is no edit any more."""
        return self.enabled and self.text is None


_of_document = table.c.tenant == bindparam("tenant"), table.c.document == bindparam("document")
_EDIT = [table.c[name] for name in ChunkEdit.__dataclass_fields__]
_counts = table.c.mark != NO_EDIT
MARKS = select(table.c.digest, table.c.context, table.c.enabled, table.c.mark).where(*_of_document, _counts)
ALL = select(*_EDIT).where(*_of_document, _counts).order_by(table.c.digest, table.c.context)
SOME = select(*_EDIT).where(*_of_document, key_in(table.c.digest, bindparam("digests", type_=KeyList())))
CLEAR = delete(table).where(
    table.c.tenant == bindparam("b_tenant"), table.c.document == bindparam("b_document")
)
DROP_TAKEN_BACK = CLEAR.where(table.c.mark == NO_EDIT)
NEW = insert(table)
_put = upsert(table).values(updated_at=now())
PUT = _put.on_conflict_do_update(
    index_elements=[table.c.tenant, table.c.document, table.c.digest, table.c.context],
    set_={name: _put.excluded[name] for name in ("text", "enabled", "mark", "size", "actor", "updated_at")},
)


def _edit(row: Row[Any]) -> ChunkEdit:
    return ChunkEdit(**row._asdict())


def marks(db: Database, tenant: str, document_id: str) -> list[EditMark]:
    """The edits of a document, without their texts."""
    stored = db.look(MARKS, {"tenant": tenant, "document": document_id})
    return [EditMark(row.digest, row.context, bool(row.enabled), row.mark) for row in stored]


def all_of(db: Database, tenant: str, document_id: str) -> list[ChunkEdit]:
    """The edits of a document."""
    return [_edit(row) for row in db.look(ALL, {"tenant": tenant, "document": document_id})]


def seen(tx: Tx, tenant: str, document_id: str) -> list[ChunkEdit]:
    """As `all_of`, in the caller's snapshot."""
    return [_edit(row) for row in tx.all(ALL, {"tenant": tenant, "document": document_id})]


def some_of(tx: Tx, tenant: str, document_id: str, digests: Iterable[str]) -> list[ChunkEdit]:
    """Those edits of a document that belong to texts with these digests, and those that were taken back."""
    values = {"tenant": tenant, "document": document_id, "digests": sorted(set(digests))}
    return [_edit(row) for row in tx.all(SOME, values)]


def _row(name: tuple[str, str], edit: ChunkEdit) -> dict[str, Any]:
    values = {each: getattr(edit, each) for each in ChunkEdit.__dataclass_fields__ if each != "updated_at"}
    size = len((edit.text or "").encode())
    return {"tenant": name[0], "document": name[1], "mark": edit.mark.mark, "size": size, **values}


def put(tx: Tx, name: tuple[str, str], edit: ChunkEdit) -> None:
    """The edit is stored, over one of the same chunk."""
    tx.execute(PUT, _row(name, edit))


def drop_taken_back(tx: Tx, tenant: str, document_id: str) -> None:
    """Edits that were taken back are gone; part of the transaction that publishes without them."""
    tx.execute(DROP_TAKEN_BACK, {"b_tenant": tenant, "b_document": document_id})


def clear(tx: Tx, tenant: str, document_id: str) -> None:
    """A deleted document has no edits."""
    tx.execute(CLEAR, {"b_tenant": tenant, "b_document": document_id})


def put_all(tx: Tx, name: tuple[str, str], edits: Sequence[ChunkEdit]) -> None:
    """A new document (tenant, id) has these edits; its row has their fingerprint."""
    statement = NEW.values(updated_at=now())
    for start in range(0, len(edits), AT_ONCE):
        tx.execute(statement, [_row(name, edit) for edit in edits[start : start + AT_ONCE]])


@dataclass(frozen=True, slots=True)
class AppliedEdit:
    """Where a version has an edit: the chunk at (slice, position), which it lacks if that is switched off."""

    slice: int
    position: int
    page: int | None
    edit: EditMark

    def as_json(self) -> list[Any]:
        """For the result of its slice."""
        edit = self.edit
        return [self.position, self.page, edit.digest, edit.context, edit.enabled, edit.mark]

    @classmethod
    def from_json(cls, slice_number: int, values: Sequence[Any]) -> "AppliedEdit":
        """From the result of its slice."""
        position, page, *edit = values
        return cls(slice_number, position, page, EditMark(*edit))


VERSION = (
    select(runs.c.options, runs.c.generation)
    .select_from(
        heads.join(runs, (runs.c.head_id == heads.c.id) & (runs.c.generation == heads.c.published_generation))
    )
    .where(heads.c.id == bindparam("head_id"), heads.c.visible)
)


@dataclass(frozen=True, slots=True)
class EditedVersion:
    """The published version: its number, the fingerprint of its edits, and where it has them, in order."""

    generation: int
    fingerprint: str | None
    applied: Sequence[AppliedEdit]


def published(tx: Tx, head_id: int) -> EditedVersion | None:
    """The published version and its edits; None if nothing is published."""
    version = tx.one(VERSION, {"head_id": head_id})
    if version is None or EDITS not in version.options:
        return None if version is None else EditedVersion(version.generation, None, ())
    places = [
        AppliedEdit.from_json(row.ordinal, values)
        for row in tx.all(slices.PUBLISHED, {"head_id": head_id})
        for values in (row.result or {}).get(EDITS, ())
    ]
    places.sort(key=lambda each: (each.slice, each.position))
    return EditedVersion(version.generation, version.options[EDITS], places)
