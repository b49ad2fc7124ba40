"""Documents changed together with their index request, in one transaction. `document_additions` adds them.

A request locks the head first and then reads the document's row; deleting ends the head's work before it
removes the row, and again after that. So a request for a document that is being deleted either sees no row,
or is ended by the second pass. The row is written while the head is locked, in the same order as in a
publication: in the other order the two would deadlock.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Boolean, Select, bindparam, exc, select, update

from holdfast.core import decide, filters
from holdfast.core.errors import ConflictError, KeyRestrictedError, StoreUnavailableError
from holdfast.core.filters import Filter
from holdfast.core.records import Ask, RequestResult, expect
from holdfast.core.states import Disposition, Status
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import documents as table
from holdfast.store.library import chunk_edits, document_passwords, document_values, documents, quotas
from holdfast.store.library.document_values import Description
from holdfast.store.library.documents import (
    BY_DIGEST,
    BY_EXTERNAL_IDS,
    DOCUMENT,
    DOCUMENT_LOCKED,
    NEW,
    Document,
    DocumentDraft,
    DocumentSource,
    no_document,
    row_of,
)
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import publish_seq, requests

# How often a transaction that lost a race against a deletion or an equal upload is retried.
TRIES = 5
_live = ~table.c.deleted


@dataclass(frozen=True, slots=True)
class DocumentAccess:
    """Which documents a requester may work on: those that pass the filter, before and after."""

    only: Filter | None = None

    def shows(self, document: Document) -> bool:
        """True if the document exists for the requester."""
        return self.only is None or filters.matches(self.only, document)

    def check(self, document: Document) -> None:
        """Return if the document exists for the requester; else NotFoundError."""
        if not self.shows(document):
            raise no_document(document.id)

    def check_changed(self, document: Document) -> None:
        """Return if the requester may leave the document like this; else KeyRestrictedError."""
        if not self.shows(document):
            raise KeyRestrictedError(
                "the document as changed would not pass the filter of this key; set its metadata and labels"
                " so that it does"
            )


EVERYTHING = DocumentAccess()


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """A request to index documents, built before any transaction.

    `ask` is pure: it says what to request, given a document as its row is. A run id is drawn once for a
    document and stays the same at every try of a transaction. `access` decides what exists for the requester
    and what it may be changed to, in the transaction.
    """

    ask: Callable[[Document], Ask]
    new_run_id: Callable[[], str]
    patience: decide.SilenceLimits
    access: DocumentAccess = EVERYTHING
    run_ids: dict[str, str] = dataclasses.field(default_factory=dict)


def requested(tx: Tx, document: Document, request: IndexRequest) -> RequestResult:
    """The result of requesting a document, inside a transaction; without content there is no request."""
    if not document.has_content:
        return unchanged(document, "no_content")
    run_id = request.run_ids.setdefault(document.id, request.new_run_id())
    return requests.answer(tx, request.ask(document), run_id=run_id, patience=request.patience)


def unchanged(document: Document, reason: str) -> RequestResult:
    """The result where there was nothing to request."""
    head = document.head_id, document.run_id, document.generation, document.status
    return RequestResult(Disposition.UNCHANGED, reason, *head)


def busy() -> StoreUnavailableError:
    """The error for losing every race against deletions and changes."""
    return StoreUnavailableError("documents with this content are being added and deleted; try again later")


def insert_or_get(tx: Tx, tenant: str, collection: str, draft: DocumentDraft) -> Document | None:
    """The new document of the draft, or the live one of the collection that has its content.

    For a draft with an external id, the one that has this id. None if that one is being deleted.
    """
    row = tx.one(NEW, row_of(tenant, collection, draft))
    if row is not None:
        name, described = (tenant, draft.id), Description(draft.metadata or {}, draft.labels or ())
        document_values.put(tx, name, collection, described)
        chunk_edits.put_all(tx, name, draft.edits)
        return documents.without_head(row)
    where = {"tenant": tenant, "collection": collection}
    if draft.external_id is not None:
        row = tx.one(BY_EXTERNAL_IDS, where | {"external_ids": [draft.external_id]})
        return None if row is None else documents.of_row(row._asdict())
    row = tx.one(BY_DIGEST, where | {"digest": draft.source.digest})
    if row is None:
        return None
    document_passwords.put(tx, tenant, row.id, draft.password)
    return documents.of_row(row._asdict())


def asked_for(document: Document, answer: RequestResult) -> Document:
    """The document as it is after the request, without reading it again."""
    if answer.disposition is Disposition.DUPLICATE:
        return dataclasses.replace(
            document,
            head_id=answer.head_id,
            status=answer.status or document.status,
            generation=answer.generation,
            run_id=answer.run_id,
        )
    if not answer.created:
        return document
    return dataclasses.replace(
        document,
        head_id=answer.head_id,
        status=Status.QUEUED,
        generation=answer.generation,
        run_id=answer.run_id,
    )


class ChangedMeanwhileError(Exception):
    """A document was deleted or changed at the same moment; the transaction must be tried again."""


LIVE = select(table.c.id).where(table.c.tenant == bindparam("tenant"), table.c.id == bindparam("id"), _live)
CONTENT = LIVE.with_only_columns(table.c.digest, table.c.options, table.c.edits)
# Such a document, and so its bytes, stay until the transaction ends.
STAYS = LIVE.with_for_update(read=True)


# A document that somebody uploads does not go with the archive or the source that it was found in.
OWNED = (
    update(table)
    .where(
        table.c.tenant == bindparam("b_tenant"),
        table.c.id == bindparam("b_id"),
        table.c.source.in_(["member", "source"]),
    )
    .values(source="upload")
)


def is_as_read(tx: Tx, document: Document) -> bool:
    """True if the document is not deleted, and has the content, options and edits that it had when read."""
    row = tx.one(CONTENT, {"tenant": document.tenant, "id": document.id})
    read = (document.digest, document.options or {}, document.edits)
    return row is not None and (row.digest, row.options or {}, row.edits) == read


def is_changed(before: Document, locked: Document) -> bool:
    """True if a request for the document as it was before would miss what it is now, or its title moved."""
    return any(
        getattr(before, name) != getattr(locked, name) for name in ("options", "title", "digest", "edits")
    )


def check_as_read(tx: Tx, document: Document) -> None:
    """Return if the document was neither deleted nor changed before its head was locked.

    Otherwise the request, which is for the content as it was read, would replace the newer one.
    """
    if not is_as_read(tx, document):
        raise ChangedMeanwhileError


def ask(db: Database, document: Document, request: IndexRequest) -> RequestResult:
    """The result of requesting a document with the content that it has now, which may be newer than this.

    NotFoundError, without a request, if it is deleted.
    """
    name = {"tenant": document.tenant, "id": document.id}
    has_changed = False

    def body(tx: Tx) -> RequestResult:
        nonlocal has_changed
        current = _there(tx, name) if has_changed else document
        answer = requested(tx, current, request)
        has_changed = True
        check_as_read(tx, current)
        if request.access.only is not None:
            request.access.check(_there(tx, name))
        return answer

    for _ in range(TRIES):
        with contextlib.suppress(ChangedMeanwhileError):
            return db.write("ask_document", body)
    raise busy()


SET_SOURCE = (
    update(table)
    .where(table.c.tenant == bindparam("b_tenant"), table.c.id == bindparam("b_id"), _live)
    .values(
        digest=bindparam("b_digest"),
        size=bindparam("b_size"),
        source=bindparam("b_source"),
        name=bindparam("b_name"),
        url=bindparam("b_url"),
        etag=bindparam("b_etag"),
        last_modified=bindparam("b_last_modified"),
        updated_at=now(),
    )
)
CLASH = select(table.c.id).where(
    table.c.tenant == bindparam("tenant"),
    table.c.collection == bindparam("collection"),
    table.c.digest == bindparam("digest"),
    table.c.id != bindparam("id"),
    table.c.external_id.is_(None),
    _live,
)


@dataclass(frozen=True, slots=True)
class Taken:
    """Another document of the collection has this content, or this external id."""

    document_id: str
    same: str = "content"


def clash(tx: Tx, document: Document, collection: str, digest: str) -> Taken | None:
    """The document of the collection beside which this one, with this content, cannot exist."""
    where = {"tenant": document.tenant, "collection": collection}
    if document.external_id is None:
        row = tx.one(CLASH, where | {"digest": digest, "id": document.id})
        return None if row is None else Taken(str(row.id))
    row = tx.one(BY_EXTERNAL_IDS, where | {"external_ids": [document.external_id]})
    return None if row is None or row.id == document.id else Taken(str(row.id), "external_id")


def set_source(
    db: Database,
    document: Document,
    source: DocumentSource,
    request: IndexRequest,
    quota: Quota = UNLIMITED,
    *,
    password: str | None = None,
) -> RequestResult | Taken:
    """The document has this content from now on and is requested, in one transaction.

    If the request is refused nothing changes. NotFoundError if the document is deleted meanwhile;
    QuotaExceededError if its growth exceeds the tenant's quota.
    """
    name = {"tenant": document.tenant, "id": document.id}
    values = {f"b_{name}": value for name, value in dataclasses.asdict(source).items()}
    has_changed = False

    def body(tx: Tx) -> RequestResult | Taken:
        nonlocal has_changed
        current = _there(tx, name) if has_changed else document
        if (other := clash(tx, current, current.collection, source.digest)) is not None:
            return other
        answer = requested(tx, dataclasses.replace(current, **dataclasses.asdict(source)), request)
        if answer.disposition is Disposition.REFUSED:
            return answer
        before = _locked(tx, name)
        if (before.options, before.edits) != (current.options, current.edits):
            has_changed = True
            raise ChangedMeanwhileError  # by someone else, before we locked it: the request is without that
        request.access.check(before)
        request.access.check_changed(dataclasses.replace(before, **dataclasses.asdict(source)))
        tx.execute(SET_SOURCE, values | {"b_tenant": document.tenant, "b_id": document.id})
        document_passwords.put(tx, document.tenant, document.id, password)
        if source.size > before.size:
            quotas.check(tx, document.tenant, quota)
        return answer

    for _ in range(TRIES):
        # Another document got this content at the same time: the next try shows which.
        with contextlib.suppress(exc.IntegrityError, ChangedMeanwhileError):
            return db.write("set_source", body)
    raise busy()


CHANGE = (
    update(table)
    .where(table.c.tenant == bindparam("b_tenant"), table.c.id == bindparam("b_id"), _live)
    .values(
        title=bindparam("b_title"),
        title_given=table.c.title_given | bindparam("b_given", type_=Boolean()),
        options=bindparam("b_options"),
        updated_at=now(),
    )
)


def change(
    db: Database,
    document: Document,
    *,
    title: str | None,
    options: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    password: str | None = None,
    external_id: str | None = None,
    actor: str = "",
    request: IndexRequest,
    expect_generation: int | None = None,
) -> RequestResult:
    """The document has this title, and these options merged into its own; an option of None is removed.

    Metadata and labels replace its own, and nothing is indexed again for them. With a password it is
    requested again, which does something only if it is not indexed yet.

    New options are requested in the same transaction; if that is refused nothing changes, not even the title.
    NotFoundError if the document is deleted meanwhile, GenerationMovedError if it is not at the expected
    generation, ConflictError if another document has the external id.
    """
    name = {"tenant": document.tenant, "id": document.id}

    def body(tx: Tx) -> RequestResult:
        before = _there(tx, name)
        request.access.check(before)
        expect(before.generation, expect_generation)
        chosen = {**before.options, **(options or {})}
        chosen = {key: value for key, value in chosen.items() if value is not None}
        answer = unchanged(before, "title")
        if options is not None or password is not None:
            answer = requested(tx, dataclasses.replace(before, options=chosen), request)
            if answer.disposition is Disposition.REFUSED:
                return answer
        new_title = before.title if title is None else title
        if new_title != before.title:
            # Before the row, in the same order as a publication. Readers cache titles by `publish_seq`.
            publish_seq.bump(tx, document.tenant, before.collection)
        locked = _locked(tx, name)
        if is_changed(before, locked):
            raise ChangedMeanwhileError  # changed by someone else before we locked it
        describe(tx, locked, new_title, metadata, labels, request.access, actor)
        document_passwords.put(tx, document.tenant, document.id, password)
        _put_external_id(tx, locked, external_id, request.access)
        if title is None and options is None:
            return unchanged(before, "metadata") if password is None else answer
        values = {"b_title": new_title, "b_given": title is not None, "b_options": chosen or None}
        tx.execute(CHANGE, values | {"b_tenant": document.tenant, "b_id": document.id})
        return answer

    for _ in range(TRIES):
        # Another document got this external id at the same time: the next try shows which.
        with contextlib.suppress(ChangedMeanwhileError, exc.IntegrityError):
            return db.write("change_document", body)
    raise StoreUnavailableError("the document's options are being changed by others; try again later")


SET_EXTERNAL_ID = (
    update(table)
    .where(table.c.tenant == bindparam("b_tenant"), table.c.id == bindparam("b_id"), _live)
    .values(external_id=bindparam("b_external_id"), updated_at=now())
)


def _put_external_id(tx: Tx, locked: Document, external_id: str | None, access: DocumentAccess) -> None:
    """The locked document has this external id, if there is one, and belongs to whoever uses that.

    A key with a filter is not told which other document has it: that one may be hidden from it.
    """
    if external_id is None or external_id == locked.external_id:
        return
    renamed = dataclasses.replace(locked, external_id=external_id)
    if (other := clash(tx, renamed, locked.collection, locked.digest)) is not None:
        one = "a document" if access.only is not None else f"document {other.document_id}"
        raise ConflictError(f"{one} of this collection has this external_id", code="same_external_id")
    name = {"b_tenant": locked.tenant, "b_id": locked.id}
    tx.execute(SET_EXTERNAL_ID, name | {"b_external_id": external_id})
    tx.execute(OWNED, name)


def describe(
    tx: Tx,
    locked: Document,
    title: str,
    metadata: Mapping[str, Any] | None,
    labels: Sequence[str] | None,
    access: DocumentAccess,
    actor: str,
) -> None:
    """The locked document is described by what is given; what is None stays as it is in its row."""
    access.check(locked)
    new = Description(
        locked.metadata if metadata is None else metadata,
        locked.labels if labels is None else tuple(labels),
    )
    access.check_changed(
        dataclasses.replace(locked, title=title, metadata=new.metadata, labels=tuple(new.labels))
    )
    old = Description(locked.metadata, locked.labels)
    name = (locked.tenant, locked.id)
    known = locked.properties
    if not document_values.replace(tx, name, old, new, properties=known, head_id=locked.head_id, actor=actor):
        raise no_document(locked.id)


def _locked(tx: Tx, name: Mapping[str, str]) -> Document:
    return _there(tx, name, DOCUMENT_LOCKED)


def _there(tx: Tx, name: Mapping[str, str], statement: Select[Any] = DOCUMENT) -> Document:
    row = tx.one(statement, name)
    if row is None:
        raise no_document(name["id"])
    return documents.of_row(row._asdict())
