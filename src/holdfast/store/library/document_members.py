"""Documents that came inside another: files of an archive, attachments of a message.

They are added in the transaction that publishes their container, so that either all of them exist and are
requested, or none. A document that several containers hold is one document (same bytes), and goes with the
last of them; one that somebody uploaded as well stays. The container's head is locked first, then the heads
of the documents in it. No circle is possible: nothing can contain a file that contains it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import ceilings, runs
from holdfast.store.base.schema import document_members as table
from holdfast.store.base.schema import documents as documents_table
from holdfast.store.library import chunk_edits, document_requests, document_values, documents, quotas
from holdfast.store.library.document_requests import IndexRequest
from holdfast.store.library.documents import GONE, Document, DocumentDraft
from holdfast.store.library.quotas import Quota
from holdfast.store.protocol import requests

# The source of a document that exists only because its container does.
SOURCE = "member"
# How deep documents may lie in each other: a message in an archive, with an attachment.
MOST_DEPTH = 3
TRIES = 5

_of_parent = table.c.tenant == bindparam("tenant"), table.c.parent == bindparam("parent")
LINK = upsert(table).on_conflict_do_nothing()
UNLINK = delete(table).where(
    table.c.tenant == bindparam("b_tenant"),
    table.c.parent == bindparam("b_parent"),
    table.c.child == bindparam("b_child"),
)
UNLINK_ALL = delete(table).where(
    table.c.tenant == bindparam("b_tenant"), table.c.parent == bindparam("b_parent")
)
INSIDE = select(table.c.child).where(*_of_parent).order_by(table.c.child)
ANY_INSIDE = INSIDE.limit(1)
OTHER_PARENT = (
    select(table.c.parent)
    .select_from(
        table.join(
            documents_table,
            (documents_table.c.tenant == table.c.tenant) & (documents_table.c.id == table.c.parent),
        )
    )
    .where(
        ~documents_table.c.deleted,
        table.c.tenant == bindparam("tenant"),
        table.c.child == bindparam("child"),
        table.c.parent != bindparam("parent"),
    )
    .limit(1)
)
_titles = select(
    documents_table.c.id, documents_table.c.title, documents_table.c.name, documents_table.c.collection
)
CHILDREN = (
    _titles.select_from(
        table.join(
            documents_table,
            (documents_table.c.tenant == table.c.tenant) & (documents_table.c.id == table.c.child),
        )
    )
    .where(*_of_parent, ~documents_table.c.deleted)
    .order_by(documents_table.c.name, documents_table.c.id)
    .limit(bindparam("limit"))
)
PARENTS = (
    _titles.select_from(
        table.join(
            documents_table,
            (documents_table.c.tenant == table.c.tenant) & (documents_table.c.id == table.c.parent),
        )
    )
    .where(
        table.c.tenant == bindparam("tenant"), table.c.child == bindparam("child"), ~documents_table.c.deleted
    )
    .order_by(documents_table.c.id)
    .limit(bindparam("limit"))
)


REQUESTED_AS = (
    select(runs.c.actor, ceilings.c.most)
    .outerjoin(ceilings, (ceilings.c.run_id == runs.c.id) & ceilings.c.requested)
    .where(runs.c.id == bindparam("run_id"))
)


@dataclass(frozen=True, slots=True)
class LinkedDocument:
    """A document that contains another, or lies in it."""

    id: str
    title: str
    name: str
    collection: str


def parents(db: Database, tenant: str, document_id: str, limit: int = 20) -> list[LinkedDocument]:
    """The documents that contain this one."""
    values = {"tenant": tenant, "child": document_id, "limit": limit}
    return [LinkedDocument(row.id, row.title, row.name, row.collection) for row in db.look(PARENTS, values)]


def children(db: Database, tenant: str, document_id: str, limit: int = 1000) -> list[LinkedDocument]:
    """The documents inside this one, ordered by their names."""
    values = {"tenant": tenant, "parent": document_id, "limit": limit}
    return [LinkedDocument(row.id, row.title, row.name, row.collection) for row in db.look(CHILDREN, values)]


def depth(db: Database, tenant: str, document_id: str) -> int:
    """In how many documents this one lies, one around the other; counted up to `MOST_DEPTH`."""
    around, level = [document_id], 0
    while around and level < MOST_DEPTH:
        around = [each.id for one in around for each in parents(db, tenant, one)]
        level += bool(around)
    return level


def has_any(tx: Tx, tenant: str, document_id: str) -> bool:
    """True if documents lie in this one."""
    return tx.one(ANY_INSIDE, {"tenant": tenant, "parent": document_id}) is not None


def requested_as(tx: Tx, run_id: str) -> tuple[str, int | None]:
    """Who requested the run of a container, and what each run may spend at most, if that was requested."""
    row = tx.one(REQUESTED_AS, {"run_id": run_id})
    return ("", None) if row is None else (row.actor, row.most)


def put(
    tx: Tx,
    container: Document,
    drafts: Sequence[DocumentDraft],
    request: IndexRequest,
    quota: Quota,
    actor: str,
) -> int:
    """The container holds exactly these documents, each of them requested; how many are requested anew.

    Part of the transaction that publishes the container. What it held before, and nobody else holds, is gone.
    QuotaExceededError if they exceed the tenant's quota.
    """
    inside: set[str] = set()
    created = 0
    for draft in sorted(drafts, key=lambda one: one.source.digest):
        document, is_new = _present(tx, container, draft)
        if document.id == container.id:
            continue
        inside.add(document.id)
        link = {"tenant": container.tenant, "parent": container.id, "child": document.id}
        tx.execute(LINK, link)
        created += document_requests.requested(tx, document, request).created or is_new
    if created:
        quotas.check(tx, container.tenant, quota)
    for row in tx.all(INSIDE, {"tenant": container.tenant, "parent": container.id}):
        if row.child not in inside:
            _remove_child(tx, container.tenant, container.id, row.child, actor)
    return created


def _present(tx: Tx, container: Document, draft: DocumentDraft) -> tuple[Document, bool]:
    """The document of the draft, new or with the same bytes; it stays until this transaction ends."""
    for _ in range(TRIES):
        document = document_requests.insert_or_get(tx, container.tenant, container.collection, draft)
        if document is None:
            continue
        if document.id == draft.id:
            return document, True
        if document.head_id is not None:
            tx.one(rows.HEAD_FOR_CHANGE, {"head_id": document.head_id})
        if document_requests.is_live(tx, document):
            return document, False
    raise document_requests.busy()


def remove(db: Database, tenant: str, document_id: str, *, actor: str = "") -> list[str]:
    """The document, and every one that only it contained, is gone for every reader; their ids.

    One transaction: rows and visible content of all of them. Empty if the document did not exist.
    """

    def body(tx: Tx) -> list[str]:
        removed = remove_in(tx, tenant, document_id, actor)
        return removed or ([document_id] if tx.again else [])

    return db.write("remove_document", body)


def remove_in(tx: Tx, tenant: str, document_id: str, actor: str) -> list[str]:
    """As `remove`, inside the caller's transaction. Call `requests.delete` afterwards for each of them.

    All heads are locked before the first is unpublished, as publications lock theirs before the collection.
    """
    names, waiting = [], [document_id]
    while waiting:
        name = waiting.pop()
        names.append(name)
        inside = [row.child for row in tx.all(INSIDE, {"tenant": tenant, "parent": name})]
        waiting += [child for child in inside if _is_only_here(tx, tenant, name, child)]
    removed = []
    for name in names:
        requests.delete_in(tx, tenant, subjects.of_document(name), tx.db.token(), actor)
        if tx.execute(GONE, {"b_tenant": tenant, "b_id": name}).rowcount == 1:
            tx.execute(document_values.CLEAR, {"b_tenant": tenant, "b_document": name})
            chunk_edits.clear(tx, tenant, name)
            tx.execute(UNLINK_ALL, {"b_tenant": tenant, "b_parent": name})
            removed.append(name)
    return removed


def _remove_child(tx: Tx, tenant: str, parent: str, child: str, actor: str) -> None:
    """The child is not in its parent any more, and gone if it was nowhere else."""
    only_here = _is_only_here(tx, tenant, parent, child)
    tx.execute(UNLINK, {"b_tenant": tenant, "b_parent": parent, "b_child": child})
    if only_here:
        remove_in(tx, tenant, child, actor)


def _is_only_here(tx: Tx, tenant: str, parent: str, child: str) -> bool:
    """True if the child exists only because of this parent. Its head is locked, so that nobody links it."""
    row = tx.one(documents.DOCUMENT, {"tenant": tenant, "id": child})
    if row is None or row.source != SOURCE:
        return False
    if row.head_id is not None:
        tx.one(rows.HEAD_FOR_CHANGE, {"head_id": row.head_id})
    return tx.one(OTHER_PARENT, {"tenant": tenant, "child": child, "parent": parent}) is None
