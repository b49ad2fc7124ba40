"""The documents inside a container move with it, in the transaction that moves the container.

A document that exists only because of the container moves. For one that stays behind, because somebody
uploaded it as well or another archive holds it, the target gets a document with the same bytes, new or the
one that is there. What the requester may not see is left where it is, and is no longer part of the container.
"""

import dataclasses
from dataclasses import dataclass, field

from holdfast.store.base.database import Tx
from holdfast.store.library import document_members, document_requests, documents, quotas
from holdfast.store.library.document_requests import DocumentAccess, IndexRequest
from holdfast.store.library.documents import DOCUMENT, Document, DocumentDraft, source_of
from holdfast.store.library.quotas import Quota


@dataclass(slots=True)
class MemberMoves:
    """What is inside a container: documents that move, and those that the target has its own of."""

    moving: list[Document] = field(default_factory=list)
    staying: list[tuple[str, Document]] = field(default_factory=list)
    hidden: list[tuple[str, Document]] = field(default_factory=list)


def locked(tx: Tx, container: Document, collection: str, access: DocumentAccess) -> MemberMoves:
    """The documents inside, at any depth, with their heads locked; the container's head is locked already."""
    family, waiting, seen = MemberMoves(), [container.id], {container.id}
    document_members.lock(tx, container.tenant, document_members.below(tx, container.tenant, [container.id]))
    while waiting:
        parent = waiting.pop()
        for child in document_members.inside(tx, container.tenant, parent):
            row = None if child in seen else tx.one(DOCUMENT, {"tenant": container.tenant, "id": child})
            seen.add(child)
            if row is None or row.collection != container.collection:
                continue
            document = documents.of_row(row._asdict())
            if not access.shows(document):
                family.hidden.append((parent, document))
            elif (
                document_members.is_only_here(tx, document.tenant, parent, child)
                and document_requests.clash(tx, document, collection, document.digest) is None
            ):
                family.moving.append(document)
                waiting.append(child)
            else:
                family.staying.append((parent, document))
    return family


def stand_in(
    tx: Tx,
    family: MemberMoves,
    container: Document,
    collection: str,
    request: IndexRequest,
    quota: Quota,
    actor: str,
) -> int:
    """For what stays behind, the target has documents of its own; how many were requested."""
    created = 0
    target = dataclasses.replace(container, collection=collection)
    for parent, old in family.staying:
        draft = DocumentDraft(
            tx.db.token()[:16],
            old.title,
            dataclasses.replace(source_of(old), source=document_members.SOURCE),
            old.options or None,
            old.metadata or None,
            old.labels,
            title_given=old.title_given,
        )
        document, is_new = document_members.present(tx, target, draft)
        document_members.link(tx, container.tenant, parent, document.id)
        created += document_requests.requested(tx, document, request).created or is_new
        document_members.unlink(tx, container.tenant, parent, old.id, actor)
    for parent, old in family.hidden:
        document_members.release(tx, container.tenant, parent, old.id)
    if created:
        quotas.check(tx, container.tenant, quota)
    return created
