"""A document changes its collection: row, head and visible content on both sides, in one transaction.

The documents inside it move with it (`member_moves`).

Both collections are protected from deletion first, then the head is locked, in the same order as when a
document is added. So a publication in flight ends before the move or after it. If before, the move sees the
generation ready and fires the actions of the new collection; if after, the publication reads the head's new
collection and fires them itself. Never both: a follow-up is unique by action, document and generation.
"""

import contextlib
import dataclasses
from typing import Any

from sqlalchemy import Row, bindparam, exc, update

from holdfast.core import subjects
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import RequestResult, expect
from holdfast.core.states import Disposition
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import documents as table
from holdfast.store.base.schema import heads
from holdfast.store.follow_ups import actions
from holdfast.store.library import document_requests, document_values, documents, member_moves
from holdfast.store.library.collections import COLLECTION_KEPT, no_collection
from holdfast.store.library.document_requests import IndexRequest, Taken
from holdfast.store.library.documents import DOCUMENT, Document, no_document
from holdfast.store.library.member_moves import MemberMoves
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import publish_seq

# If many move one document at the same moment, each loses to every other at most once.
TRIES = 30

SET_COLLECTION = (
    update(table)
    .where(table.c.tenant == bindparam("b_tenant"), table.c.id == bindparam("b_id"), ~table.c.deleted)
    .values(collection=bindparam("b_collection"), updated_at=now())
)
# Jobs on the document move with it. Its follow-ups belong to actions of the collection it leaves.
JOBS_TOO = (
    update(heads)
    .where(
        heads.c.tenant == bindparam("b_tenant"),
        heads.c.subject == bindparam("b_subject"),
        heads.c.kind != subjects.INDEX,
    )
    .values(collection=bindparam("b_collection"))
)


class _MovedError(Exception):
    """The document was moved by someone else at the same moment; the transaction was rolled back."""


def move(
    db: Database,
    name: tuple[str, str],
    collection: str,
    *,
    actor: str,
    request: IndexRequest,
    expect_generation: int | None = None,
    quota: Quota = UNLIMITED,
) -> RequestResult | Taken:
    """The document (tenant, id) is in `collection`, and requested if it is indexed differently there.

    So are the documents that only it contains.

    Its external id goes with it. Nothing changes if the request is refused, or if a document of that
    collection has the same external id, or for one without an external id the same content: Taken.
    NotFoundError if the document or one of the collections is deleted; GenerationMovedError if it is not at
    the expected generation.
    """
    token = db.token()

    def body(tx: Tx) -> RequestResult | Taken:
        seen = _there(tx, name)
        for each in sorted({seen.collection, collection}):
            if tx.one(COLLECTION_KEPT, {"tenant": name[0], "id": each}) is None:
                raise no_collection(each)
        return _move(tx, seen, collection, _Order(token, actor, request, quota), expect_generation)

    for number in range(TRIES):
        # The other move was quicker, or gave the target the same content: the next try shows which.
        with contextlib.suppress(_MovedError, exc.IntegrityError):
            return db.write("move", body)
        db.pause(0.002 * number)
    raise StoreUnavailableError("the document is being moved by others; try again later")


@dataclasses.dataclass(frozen=True, slots=True)
class _Order:
    """Who moves, how what is moved is requested, and the token of the move."""

    token: str
    actor: str
    request: IndexRequest
    quota: Quota


def _move(
    tx: Tx, seen: Document, collection: str, order: _Order, expect_generation: int | None
) -> RequestResult | Taken:
    about = {"tenant": seen.tenant, "kind": subjects.INDEX, "subject": subjects.of_document(seen.id)}
    row = tx.one(rows.HEAD_BY_SUBJECT_FOR_CHANGE, about)
    if row is None or row.deleted:
        raise no_document(seen.id)
    document = _there(tx, (seen.tenant, seen.id))
    order.request.access.check(document)
    if tx.again and actions.was_moved(tx, row.id, order.token):
        return _request_if_changed(tx, document, order.request)
    expect(row.generation, expect_generation)
    if document.collection != seen.collection:
        raise _MovedError
    if (other := document_requests.clash(tx, document, collection, document.digest)) is not None:
        return other
    family = MemberMoves()
    if document.collection != collection:
        family = member_moves.locked(tx, document, collection, order.request.access)
    answer = _request_if_changed(tx, dataclasses.replace(document, collection=collection), order.request)
    if answer.disposition is Disposition.REFUSED or document.collection == collection:
        return answer
    _carry(tx, row, collection, order)
    for child in family.moving:
        _request_if_changed(tx, dataclasses.replace(child, collection=collection), order.request)
        _carry(tx, tx.one(rows.HEAD_FOR_CHANGE, {"head_id": child.head_id}), collection, order)
    member_moves.stand_in(tx, family, document, collection, order.request, order.quota, order.actor)
    # Before the rows of documents, in the same order as a publication.
    publish_seq.bump(tx, document.tenant, document.collection, collection)
    for each in (document, *family.moving):
        values = {"b_tenant": each.tenant, "b_id": each.id, "b_collection": collection}
        tx.execute(SET_COLLECTION, values)
        document_values.move(tx, (each.tenant, each.id), collection)
    return answer


def _carry(tx: Tx, row: Row[Any] | None, collection: str, order: _Order) -> None:
    """The locked head, and those of jobs on its document, are in the collection."""
    if row is None:
        return
    actions.carry(tx, row, collection, token=order.token, actor=order.actor)
    tx.execute(JOBS_TOO, {"b_tenant": row.tenant, "b_subject": row.subject, "b_collection": collection})


def _request_if_changed(tx: Tx, moved: Document, request: IndexRequest) -> RequestResult:
    """The result for a moved document; it is not requested where it would be indexed the same."""
    if request.ask(moved).fingerprint == moved.fingerprint:
        return document_requests.unchanged(moved, "moved")
    return document_requests.requested(tx, moved, request)


def _there(tx: Tx, name: tuple[str, str]) -> Document:
    row = tx.one(DOCUMENT, {"tenant": name[0], "id": name[1]})
    if row is None:
        raise no_document(name[1])
    return documents.of_row(row._asdict())
