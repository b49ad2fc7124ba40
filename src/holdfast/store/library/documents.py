"""Documents as uploaded. The state of their processing is on the heads.

A document's row says which content is wanted; `document_requests` creates the generations.
"""

from collections.abc import Collection as Container
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    case,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import chunk_edits, gaps, subjects
from holdfast.core.errors import NotFoundError
from holdfast.core.gaps import Gap
from holdfast.core.languages import ENGLISH
from holdfast.core.states import Status
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import documents, heads, runs
from holdfast.store.library import document_values
from holdfast.store.library.chunk_edits import ChunkEdit


@dataclass(frozen=True, slots=True)
class DocumentSource:
    """Where a document's content comes from, and its digest."""

    digest: str
    size: int
    source: str
    name: str = ""
    url: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A document and the state of its indexing. The facts are those of the published generation."""

    tenant: str
    id: str
    collection: str
    title: str
    title_given: bool
    name: str
    external_id: str | None
    source: str
    url: str | None
    etag: str | None
    last_modified: str | None
    digest: str
    size: int
    options: Mapping[str, Any]
    metadata: Mapping[str, Any]
    labels: tuple[str, ...]
    format: str | None
    language: str | None
    pages: int | None
    chunks: int | None
    thumbnail: str | None
    gaps: tuple[Gap, ...]
    page_qualities: Mapping[str, int]
    properties: Mapping[str, Any]
    edits: str | None
    created_at: float
    updated_at: float
    head_id: int | None
    status: Status
    generation: int
    published_generation: int
    visible: bool
    run_id: str | None
    fingerprint: str

    @property
    def has_content(self) -> bool:
        """False for an imported document without content; no other is without."""
        return self.size > 0


def source_of(document: Document) -> DocumentSource:
    """Where the document's content comes from, and its digest."""
    return DocumentSource(**{name: getattr(document, name) for name in DocumentSource.__dataclass_fields__})


_ROW = [documents.c[name] for name in Document.__dataclass_fields__ if name in documents.c]
_HEAD = [
    heads.c.id.label("head_id"),
    heads.c.status,
    heads.c.generation,
    heads.c.published_generation,
    heads.c.visible,
    heads.c.run_id,
    heads.c.fingerprint,
]
OF_DOCUMENT = and_(
    heads.c.tenant == documents.c.tenant,
    heads.c.kind == subjects.INDEX,
    heads.c.subject == literal(subjects.DOCUMENT) + documents.c.id,
)
WITH_HEADS = documents.outerjoin(heads, OF_DOCUMENT)
_FOUND = select(*_ROW, *_HEAD).select_from(WITH_HEADS)
_live = ~documents.c.deleted
DOCUMENT = _FOUND.where(documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("id"), _live)
# Its row stays as it is until the transaction ends; the head is locked before, if at all.
DOCUMENT_LOCKED = DOCUMENT.with_for_update(of=documents)
# Documents with an external id are told apart by that, and may have equal contents.
_by_content = and_(documents.c.external_id.is_(None), _live)
BY_DIGEST = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    documents.c.digest == bindparam("digest"),
    _by_content,
)
BY_EXTERNAL_IDS = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    documents.c.external_id.is_not(None),
    key_in(documents.c.external_id, bindparam("external_ids", type_=KeyList())),
    _live,
)
PAGE = (
    _FOUND.where(
        documents.c.tenant == bindparam("tenant"),
        documents.c.collection == bindparam("collection"),
        documents.c.id > bindparam("after"),
        _live,
    )
    .order_by(documents.c.id)
    .limit(bindparam("limit"))
)
BY_NAMES = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    key_in(documents.c.name, bindparam("names", type_=KeyList())),
    _by_content,
)
BY_DIGESTS = _FOUND.where(
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
    key_in(documents.c.digest, bindparam("digests", type_=KeyList())),
    _by_content,
)


def selecting(*more: ColumnElement[Any]) -> Select[Any]:
    """The query for live documents; `of_row` takes its columns, except those in `more`."""
    return select(*_ROW, *_HEAD, *more).select_from(WITH_HEADS).where(_live)


def of_row(row: Mapping[str, Any]) -> Document:
    """The document of a row of `selecting`."""
    values = dict(row)
    values["options"] = row["options"] or {}
    values["metadata"] = row["metadata"] or {}
    values["labels"] = tuple(row["labels"] or ())
    values["properties"] = row["properties"] or {}
    values["status"] = Status(row["status"]) if row["status"] else Status.IDLE
    for name in ("generation", "published_generation"):
        values[name] = values[name] or 0
    values["gaps"] = gaps.from_json(row["gaps"])
    values["page_qualities"] = row["page_qualities"] or {}
    values["visible"] = bool(row["visible"])
    values["fingerprint"] = row["fingerprint"] or ""
    return Document(**values)


def _document(row: Row[Any]) -> Document:
    return of_row(row._asdict())


def without_head(row: Row[Any]) -> Document:
    """The document of a row of `NEW`, which has no head yet."""
    return of_row(row._asdict() | dict.fromkeys(column.key for column in _HEAD))


def document(db: Database, tenant: str, document_id: str) -> Document | None:
    """The document, or None if it does not exist (any more)."""
    row = db.first(DOCUMENT, {"tenant": tenant, "id": document_id})
    return None if row is None else _document(row)


def page(db: Database, tenant: str, collection: str, *, after: str = "", limit: int = 100) -> list[Document]:
    """The documents of a collection after the id `after`, ordered by id."""
    values = {"tenant": tenant, "collection": collection, "after": after, "limit": limit}
    return [_document(row) for row in db.look(PAGE, values)]


def by_names(db: Database, tenant: str, collection: str, names: Container[str]) -> dict[str, list[Document]]:
    """The documents of a collection with these file names; for the same name, the latest last.

    Only those without an external id: what another system names is not a file of ours.
    """
    values = {"tenant": tenant, "collection": collection, "names": list(names)}
    by_name: dict[str, list[Document]] = {}
    for row in db.look(BY_NAMES, values):
        by_name.setdefault(row.name, []).append(_document(row))
    return {name: sorted(each, key=lambda one: one.updated_at) for name, each in by_name.items()}


def by_digests(db: Database, tenant: str, collection: str, digests: Container[str]) -> dict[str, Document]:
    """The documents of a collection with one of these contents, and without an external id."""
    values = {"tenant": tenant, "collection": collection, "digests": list(digests)}
    return {row.digest: _document(row) for row in db.look(BY_DIGESTS, values)}


def by_external_ids(
    db: Database, tenant: str, collection: str, external_ids: Container[str]
) -> dict[str, Document]:
    """The documents of a collection with these external ids."""
    values = {"tenant": tenant, "collection": collection, "external_ids": list(external_ids)}
    return {row.external_id: _document(row) for row in db.look(BY_EXTERNAL_IDS, values)}


NEW = upsert(documents).values(created_at=now(), updated_at=now()).on_conflict_do_nothing().returning(*_ROW)


@dataclass(frozen=True, slots=True)
class DocumentDraft:
    """A document about to be added."""

    id: str
    title: str
    source: DocumentSource
    options: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None
    labels: Sequence[str] | None = None
    password: str | None = field(default=None, repr=False)
    title_given: bool = True
    # As they were where it is copied from.
    edits: Sequence[ChunkEdit] = ()
    external_id: str | None = None


def row_of(tenant: str, collection: str, draft: DocumentDraft) -> dict[str, Any]:
    """The values of a new document's row."""
    return {
        "tenant": tenant,
        "id": draft.id,
        "collection": collection,
        "title": draft.title,
        "title_given": draft.title_given,
        "options": dict(draft.options) if draft.options else None,
        "metadata": dict(draft.metadata) if draft.metadata else None,
        "labels": list(draft.labels or ()) or None,
        "password": draft.password,
        "external_id": draft.external_id,
        "edits": chunk_edits.fingerprint(edit.mark for edit in draft.edits),
        **{name: getattr(draft.source, name) for name in DocumentSource.__dataclass_fields__},
    }


def no_document(document_id: str) -> NotFoundError:
    """The error for a missing document."""
    return NotFoundError(f"there is no document {document_id!r}", code="unknown_document")


GONE = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"), _live)
    .values(deleted=True, password=None, updated_at=now())
)


FACTS = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"))
    .values(
        format=bindparam("b_format"),
        pages=bindparam("b_pages"),
        chunks=bindparam("b_chunks"),
        thumbnail=bindparam("b_thumbnail"),
        gaps=bindparam("b_gaps"),
        properties=bindparam("b_properties"),
        outline=bindparam("b_outline"),
        language=bindparam("b_language"),
        page_qualities=bindparam("b_qualities"),
        # Titles are searched in the document's language: readers look for what changed since they read them.
        updated_at=case(
            (
                func.coalesce(documents.c.language, literal(ENGLISH))
                != func.coalesce(bindparam("b_language", type_=Text()), literal(ENGLISH)),
                now(),
            ),
            else_=documents.c.updated_at,
        ),
    )
    .returning(
        *(documents.c[name] for name in ("collection", "metadata", "title", "title_given", "name", "url"))
    )
)
RETITLE = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"))
    .values(title=bindparam("b_title"), updated_at=now())
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What indexing says about a document; `title` is that of the file, if it has a good one."""

    form: str | None
    pages: int
    chunks: int
    thumbnail: str | None
    unread: Sequence[Gap] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    outline: Sequence[Sequence[Any]] = ()
    title: str | None = None
    language: str | None = None
    page_qualities: Mapping[str, int] = field(default_factory=dict)


def put_facts(tx: Tx, tenant: str, document_id: str, facts: Facts, *, is_first: bool) -> None:
    """The facts of a document's published generation; part of the transaction that publishes it.

    A title that nobody gave becomes that of the file. `is_first`: no generation was published before.
    """
    where = {"b_tenant": tenant, "b_id": document_id}
    values: dict[str, Any] = where | {
        "b_format": facts.form,
        "b_pages": facts.pages,
        "b_chunks": facts.chunks,
        "b_language": facts.language,
        "b_qualities": dict(facts.page_qualities) or None,
    }
    values |= {"b_thumbnail": facts.thumbnail, "b_properties": dict(facts.properties) or None}
    values |= {"b_gaps": [gap.as_json() for gap in facts.unread] or None}
    row = tx.one(FACTS, values | {"b_outline": [list(each) for each in facts.outline] or None})
    if row is None:
        return
    if not row.title_given:
        title = facts.title or default_title(row.name, row.url)
        if title != row.title:
            tx.execute(RETITLE, where | {"b_title": title})
    if facts.properties or not is_first:
        name = tenant, document_id
        document_values.put_file(
            tx, name, row.collection, facts.properties, row.metadata or {}, is_first=is_first
        )


MOST_TITLE = 500


def default_title(name: str, url: str | None) -> str:
    """The title of a document that nobody gave one: the name of its file, or its URL."""
    return " ".join((name.rsplit("/", 1)[-1] or url or "").split())[:MOST_TITLE] or "untitled"


OUTLINE = select(documents.c.outline).where(
    documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("id"), _live
)


def outline(db: Database, tenant: str, document_id: str) -> list[tuple[int, str, int]]:
    """The table of contents of the published generation: level, title and page of each entry."""
    rows = db.look(OUTLINE, {"tenant": tenant, "id": document_id})
    return [(int(level), str(title), int(page)) for row in rows for level, title, page in row.outline or ()]


RUN_GAPS = update(runs).where(runs.c.id == bindparam("b_run")).values(result=bindparam("b_result"))


def put_run_gaps(tx: Tx, run_id: str, unread: Sequence[Gap]) -> None:
    """The gaps are shown with the run that published them; part of the transaction that publishes it."""
    tx.execute(RUN_GAPS, {"b_run": run_id, "b_result": {"gaps": [gap.as_json() for gap in unread]}})
