"""Documents added, each together with its index request, in one transaction.

Two uploads of the same bytes into one collection race for one row of a unique index, and the loser gets the
winner's document. So do two uploads with the same external id, of which the loser changes the winner's
document. Documents with an external id may have equal contents: each belongs to whoever uses its id, so that
no other upload may share it.
"""

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.core import subjects
from holdfast.core.errors import BadRequestError, GenerationMovedError
from holdfast.core.records import RequestResult
from holdfast.core.states import Disposition
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.library import document_passwords, document_requests, documents, quotas
from holdfast.store.library.collections import COLLECTION_KEPT, no_collection
from holdfast.store.library.document_requests import (
    CHANGE,
    OWNED,
    SET_SOURCE,
    STAYS,
    TRIES,
    ChangedMeanwhileError,
    IndexRequest,
    busy,
    check_as_read,
    requested,
)
from holdfast.store.library.documents import Document, DocumentDraft, no_document, source_of
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import publish_seq


@dataclass(frozen=True, slots=True)
class AddedDocument:
    """The result of a draft: the document with its content, and the result of the request for it."""

    document: Document
    answer: RequestResult
    grows: bool  # new, or larger than it was


def add(
    db: Database,
    tenant: str,
    collection: str,
    drafts: Sequence[DocumentDraft],
    request: IndexRequest,
    quota: Quota = UNLIMITED,
    *,
    copied: str | None = None,
) -> dict[str, AddedDocument]:
    """By the draft's id, a new document or the existing one with that content; each is requested.

    For a draft with an external id, the existing one is that with this id, and is as the draft says from now
    on. One transaction for all: no document exists without a request. NotFoundError if the collection, or the
    document that is `copied`, is deleted meanwhile; QuotaExceededError if they exceed the tenant's quota,
    which is this one unless it has its own; GenerationMovedError if one is not at the expected generation.
    """

    def body(tx: Tx) -> dict[str, AddedDocument]:
        if tx.one(COLLECTION_KEPT, {"tenant": tenant, "id": collection}) is None:
            raise no_collection(collection)
        # In one order, so that two of these transactions do not deadlock.
        ordered = sorted(drafts, key=lambda one: (one.external_id or "", one.source.digest))
        added = {draft.id: _one(tx, tenant, collection, draft, request) for draft in ordered}
        if any(each.grows for each in added.values()):
            quotas.check(tx, tenant, quota)
        # Last: a publication waits for this row while it holds its head.
        if copied is not None and tx.one(STAYS, {"tenant": tenant, "id": copied}) is None:
            raise no_document(copied)
        return added

    for _ in range(TRIES):
        with contextlib.suppress(ChangedMeanwhileError):
            return db.write("add_documents", body)
    raise busy()


def _one(tx: Tx, tenant: str, collection: str, draft: DocumentDraft, request: IndexRequest) -> AddedDocument:
    document = document_requests.insert_or_get(tx, tenant, collection, draft)
    if document is None:
        raise ChangedMeanwhileError
    is_new = document.id == draft.id
    if not is_new and draft.external_id is not None:
        return _updated(tx, document, draft, request)
    if not is_new and not request.access.shows(document):
        raise BadRequestError(
            "a document of this collection already has the same content", code="same_content"
        )
    answer = requested(tx, document, request)
    if answer.reason == "generation_mismatch":
        raise GenerationMovedError("there is no document with this external_id yet; send no If-Match")
    if not is_new:
        check_as_read(tx, document)
        tx.execute(OWNED, {"b_tenant": tenant, "b_id": document.id})
    return AddedDocument(document_requests.asked_for(document, answer), answer, grows=is_new)


def _updated(tx: Tx, seen: Document, draft: DocumentDraft, request: IndexRequest) -> AddedDocument:
    """The document with the draft's external id has its content, and what else the draft says.

    What the draft does not say stays as it is; options are merged. Nothing changes if the request is refused.
    """
    head = {"tenant": seen.tenant, "kind": subjects.INDEX, "subject": subjects.of_document(seen.id)}
    tx.one(rows.HEAD_BY_SUBJECT_FOR_CHANGE, head)
    before = _current(tx, seen, draft)
    if not request.access.shows(before):
        message = "a document of this collection already has the same external_id"
        raise BadRequestError(message, code="same_external_id")
    options = {**before.options, **(draft.options or {})}
    updated = dataclasses.replace(before, **dataclasses.asdict(draft.source), options=options)
    request.access.check_changed(
        dataclasses.replace(
            updated,
            metadata=before.metadata if draft.metadata is None else draft.metadata,
            labels=before.labels if draft.labels is None else tuple(draft.labels),
        )
    )
    answer = requested(tx, updated, request)
    if answer.disposition is Disposition.REFUSED:
        return AddedDocument(before, answer, grows=False)
    title = draft.title if draft.title_given else before.title
    if title != before.title:
        # Before the row, in the same order as a publication. Readers cache titles by `publish_seq`.
        publish_seq.bump(tx, before.tenant, before.collection)
    locked = _current(tx, seen, draft, locked=True)
    if document_requests.is_changed(before, locked):
        raise ChangedMeanwhileError
    actor = request.ask(before).actor
    document_requests.describe(tx, locked, title, draft.metadata, draft.labels, request.access, actor)
    document_passwords.put(tx, before.tenant, before.id, draft.password)
    name = {"b_tenant": before.tenant, "b_id": before.id}
    if draft.source != source_of(before):
        values = {f"b_{field}": value for field, value in dataclasses.asdict(draft.source).items()}
        tx.execute(SET_SOURCE, values | name)
    if title != before.title or options != before.options:
        values = {"b_title": title, "b_given": draft.title_given, "b_options": options or None}
        tx.execute(CHANGE, values | name)
    grows = draft.source.size > before.size
    return AddedDocument(document_requests.asked_for(_current(tx, seen, draft), answer), answer, grows=grows)


def _current(tx: Tx, seen: Document, draft: DocumentDraft, *, locked: bool = False) -> Document:
    """The document as it is now, if it still has the draft's external id in the same collection."""
    statement = documents.DOCUMENT_LOCKED if locked else documents.DOCUMENT
    row = tx.one(statement, {"tenant": seen.tenant, "id": seen.id})
    if row is None or (row.external_id, row.collection) != (draft.external_id, seen.collection):
        raise ChangedMeanwhileError
    return documents.of_row(row._asdict())
