"""Documents that came inside another: files of an archive, attachments of a message.

They are added in the transaction that publishes their container, so that either all of them exist and are
requested, or none. A document that several containers hold is one document (same bytes), and goes with the
last of them; one that somebody uploaded as well stays.

Several heads are locked at once, always in one order, so that no two of these transactions deadlock:
containers before what they contain, and otherwise by id; and all of them before the counter of a collection,
which a publication takes while it holds its head.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.core.states import Status, shown
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import ceilings, heads, runs
from holdfast.store.base.schema import document_members as table
from holdfast.store.base.schema import documents as documents_table
from holdfast.store.library import chunk_edits, document_requests, document_values, documents, quotas
from holdfast.store.library.document_requests import EVERYTHING, DocumentAccess, IndexRequest
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
        ).outerjoin(heads, documents.OF_DOCUMENT)
    )
    .where(
        ~documents_table.c.deleted,
        table.c.tenant == bindparam("tenant"),
        table.c.child == bindparam("child"),
        table.c.parent != bindparam("parent"),
    )
    .limit(1)
)
BELOW = select(table.c.parent, table.c.child).where(
    table.c.tenant == bindparam("tenant"), key_in(table.c.parent, bindparam("parents", type_=KeyList()))
)
HEADS = select(heads.c.id, heads.c.subject).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == subjects.INDEX,
    key_in(heads.c.subject, bindparam("subjects", type_=KeyList())),
)
WITH_CONTENTS = select(documents_table.c.id, documents_table.c.digest).where(
    documents_table.c.tenant == bindparam("tenant"),
    documents_table.c.collection == bindparam("collection"),
    key_in(documents_table.c.digest, bindparam("digests", type_=KeyList())),
    ~documents_table.c.deleted,
)
_titles = select(
    documents_table.c.id,
    documents_table.c.title,
    documents_table.c.name,
    documents_table.c.collection,
    heads.c.status,
)
CHILDREN = (
    _titles.select_from(
        table.join(
            documents_table,
            (documents_table.c.tenant == table.c.tenant) & (documents_table.c.id == table.c.child),
        ).outerjoin(heads, documents.OF_DOCUMENT)
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
        ).outerjoin(heads, documents.OF_DOCUMENT)
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
    index_status: str


@dataclass(frozen=True, slots=True)
class Family:
    """The documents around a document: those that contain it, and those inside it."""

    parents: Sequence[LinkedDocument]
    children: Sequence[LinkedDocument]


def parents(db: Database, tenant: str, document_id: str, limit: int = 20) -> list[LinkedDocument]:
    """The documents that contain this one."""
    values = {"tenant": tenant, "child": document_id, "limit": limit}
    return [_linked(row) for row in db.look(PARENTS, values)]


def children(db: Database, tenant: str, document_id: str, limit: int = 1000) -> list[LinkedDocument]:
    """The documents inside this one, ordered by their names."""
    values = {"tenant": tenant, "parent": document_id, "limit": limit}
    return [_linked(row) for row in db.look(CHILDREN, values)]


def _linked(row: Any) -> LinkedDocument:
    status = shown(subjects.INDEX, Status(row.status or Status.IDLE))
    return LinkedDocument(row.id, row.title, row.name, row.collection, status)


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


def inside(tx: Tx, tenant: str, document_id: str) -> list[str]:
    """The ids of the documents in this one."""
    return [row.child for row in tx.all(INSIDE, {"tenant": tenant, "parent": document_id})]


def below(tx: Tx, tenant: str, names: Collection[str]) -> dict[str, int]:
    """Every document in these, at any depth, and how many levels there are below it."""
    edges: set[tuple[str, str]] = set()
    waiting, seen = sorted(names), set(names)
    while waiting:
        rows = tx.all(BELOW, {"tenant": tenant, "parents": waiting})
        edges |= {(row.parent, row.child) for row in rows}
        waiting = sorted({row.child for row in rows} - seen)
        seen |= set(waiting)
    heights = dict.fromkeys(seen, 0)
    for _ in range(MOST_DEPTH + 1):  # links that were imported might lead back, so that this must end
        for parent, child in edges:
            heights[parent] = max(heights[parent], min(heights[child] + 1, MOST_DEPTH))
    return {name: height for name, height in heights.items() if name not in names}


def lock(tx: Tx, tenant: str, heights: Mapping[str, int]) -> None:
    """The heads of these documents are locked: containers before what they contain, otherwise by id."""
    if not heights:
        return
    names = {subjects.of_document(name): height for name, height in heights.items()}
    rows_of = tx.all(HEADS, {"tenant": tenant, "subjects": sorted(names)})
    for row in sorted(rows_of, key=lambda each: (-names[each.subject], each.id)):
        tx.one(rows.HEAD_FOR_CHANGE, {"head_id": row.id})


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
    _lock_family(tx, container, drafts)
    now_inside: set[str] = set()
    created = 0
    for draft in sorted(drafts, key=lambda one: one.source.digest):
        document, is_new = present(tx, container, draft)
        if document.id == container.id:
            continue
        now_inside.add(document.id)
        link(tx, container.tenant, container.id, document.id)
        created += document_requests.requested(tx, document, request).created or is_new
    if created:
        quotas.check(tx, container.tenant, quota)
    for child in inside(tx, container.tenant, container.id):
        if child not in now_inside:
            unlink(tx, container.tenant, container.id, child, actor)
    return created


def _lock_family(tx: Tx, container: Document, drafts: Sequence[DocumentDraft]) -> None:
    """Lock every document that `put` may request or remove."""
    where = {"tenant": container.tenant, "collection": container.collection}
    digests = [draft.source.digest for draft in drafts]
    same = {row.id for row in tx.all(documents.BY_DIGESTS, where | {"digests": digests})} - {container.id}
    before = below(tx, container.tenant, [container.id])
    lock(tx, container.tenant, {**below(tx, container.tenant, same), **dict.fromkeys(same, 0), **before})


def link(tx: Tx, tenant: str, parent: str, child: str) -> None:
    """The child is in the parent."""
    if parent != child:
        tx.execute(LINK, {"tenant": tenant, "parent": parent, "child": child})


def link_by_content(
    tx: Tx, where: tuple[str, str, str], *, members: Sequence[str], inside: Sequence[str]
) -> None:
    """The document (tenant, collection, id) is linked with those of the collection that have these contents.

    Of two that are added at the same time, at least the second sees the row of the first.
    """
    tenant, collection, name = where
    digests = sorted({*members, *inside})
    if not digests:
        return
    values = {"tenant": tenant, "collection": collection, "digests": digests}
    ids = {row.digest: row.id for row in tx.all(documents.BY_DIGESTS, values)}
    for digest in members:
        if digest in ids:
            link(tx, tenant, name, ids[digest])
    # A container may have an external id, and then others may have its content.
    for row in tx.all(WITH_CONTENTS, values) if inside else ():
        if row.digest in inside:
            link(tx, tenant, row.id, name)


def present(tx: Tx, container: Document, draft: DocumentDraft) -> tuple[Document, bool]:
    """The document of the draft, new or with the same bytes; it stays until this transaction ends."""
    for _ in range(TRIES):
        document = document_requests.insert_or_get(tx, container.tenant, container.collection, draft)
        if document is None:
            continue
        if document.id == draft.id:
            return document, True
        if document.head_id is not None:
            tx.one(rows.HEAD_FOR_CHANGE, {"head_id": document.head_id})
        if document_requests.is_as_read(tx, document):
            return document, False
    raise document_requests.busy()


def remove(
    db: Database, tenant: str, document_id: str, *, access: DocumentAccess = EVERYTHING, actor: str = ""
) -> list[str]:
    """The document, and every one that only it contained, is gone for every reader; their ids.

    One transaction: rows and visible content of all of them. Empty if the document did not exist. What the
    requester may not see stays, and is a document of its own from then on.
    """

    def body(tx: Tx) -> list[str]:
        removed = remove_in(tx, tenant, document_id, actor, access)
        return removed or ([document_id] if tx.again else [])

    return db.write("remove_document", body)


def remove_in(
    tx: Tx, tenant: str, document_id: str, actor: str, access: DocumentAccess = EVERYTHING
) -> list[str]:
    """As `remove`, inside the caller's transaction. Call `end_removal` afterwards with their ids.

    All heads are locked before the first is unpublished, as publications lock theirs before the collection.
    """
    lock(tx, tenant, {document_id: MOST_DEPTH + 1})
    lock(tx, tenant, below(tx, tenant, [document_id]))
    names, waiting = {document_id: None}, [document_id]
    while waiting:
        parent = waiting.pop()
        for child in inside(tx, tenant, parent):
            if child in names or not is_only_here(tx, tenant, parent, child):
                continue
            if not _is_shown(tx, tenant, child, access):
                release(tx, tenant, parent, child)
                continue
            names[child] = None
            waiting.append(child)
    for name in names:
        requests.lock_in(tx, tenant, subjects.of_document(name))
    removed = []
    for name in names:
        requests.delete_in(tx, tenant, subjects.of_document(name), tx.db.token(), actor)
        if tx.execute(GONE, {"b_tenant": tenant, "b_id": name}).rowcount == 1:
            tx.execute(document_values.CLEAR, {"b_tenant": tenant, "b_document": name})
            chunk_edits.clear(tx, tenant, name)
            tx.execute(UNLINK_ALL, {"b_tenant": tenant, "b_parent": name})
            removed.append(name)
    return removed


def end_removal(db: Database, tenant: str, document_ids: Sequence[str], actor: str) -> None:
    """Nothing is left of these removed documents, whatever a publication in flight has added to them."""
    for name in document_ids:
        requests.delete(db, tenant, subjects.of_document(name), actor=actor)
        document_values.forget(db, tenant, name)


def _is_shown(tx: Tx, tenant: str, document_id: str, access: DocumentAccess) -> bool:
    if access.only is None:
        return True
    row = tx.one(documents.DOCUMENT, {"tenant": tenant, "id": document_id})
    return row is not None and access.shows(documents.of_row(row._asdict()))


def release(tx: Tx, tenant: str, parent: str, child: str) -> None:
    """The child is not in its parent any more, and stays as a document of its own."""
    tx.execute(UNLINK, {"b_tenant": tenant, "b_parent": parent, "b_child": child})
    tx.execute(document_requests.OWNED, {"b_tenant": tenant, "b_id": child})


def unlink(tx: Tx, tenant: str, parent: str, child: str, actor: str) -> None:
    """The child is not in its parent any more, and gone if it was nowhere else."""
    only_here = is_only_here(tx, tenant, parent, child)
    tx.execute(UNLINK, {"b_tenant": tenant, "b_parent": parent, "b_child": child})
    if only_here:
        remove_in(tx, tenant, child, actor)


def is_only_here(tx: Tx, tenant: str, parent: str, child: str) -> bool:
    """True if the child exists only because of this parent. Its head is locked, so that nobody links it."""
    row = tx.one(documents.DOCUMENT, {"tenant": tenant, "id": child})
    if row is None or row.source != SOURCE:
        return False
    if row.head_id is not None:
        tx.one(rows.HEAD_FOR_CHANGE, {"head_id": row.head_id})
    return tx.one(OTHER_PARENT, {"tenant": tenant, "child": child, "parent": parent}) is None
