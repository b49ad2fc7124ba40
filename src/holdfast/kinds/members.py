"""The files inside a document: taken out slice by slice, then added as documents when it is published.

A slice takes some files out and keeps their bytes; its result names them. The transaction that publishes the
container adds a document for each and requests it, with the options, metadata and labels of the container.
Until then nobody sees any of them; a crash in between leaves bytes that nobody names, and the sweep removes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.core import subjects
from holdfast.core.decide import SilenceLimits
from holdfast.core.errors import HoldfastError, WorkError
from holdfast.core.records import Ask, Claim, Slice
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse import sniff
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import Format, Outline
from holdfast.engine.work import Work
from holdfast.kinds import edited_chunks
from holdfast.store.base.database import Database, Tx
from holdfast.store.library import document_members, documents
from holdfast.store.library.document_requests import IndexRequest
from holdfast.store.library.documents import Document, DocumentDraft, DocumentSource
from holdfast.store.library.quotas import Quota

# Files that are taken out by one task.
STEP = 25
MOST_TITLE = 500


def slices(db: Database, work: Work, outline: Outline) -> list[Slice]:
    """The slices that take the files out; none for a document that lies too deep in others.

    `unsafe_archive` for an archive in an archive: each could hold another, without end.
    """
    if not outline.members:
        if outline.format is Format.ZIP:
            raise WorkError("the archive has no files", code="no_text")
        return []
    level = document_members.depth(db, work.claim.tenant, subjects.document_id(work.claim.subject))
    if level and outline.format is Format.ZIP:
        raise WorkError(
            "an archive inside an archive or a message is not unpacked; unpack it and upload its files",
            code="unsafe_archive",
        )
    if level >= document_members.MOST_DEPTH:
        return []
    return [
        Slice(
            {
                "format": outline.format.value,
                "first": first,
                "last": min(first + STEP - 1, outline.members - 1),
                "members": True,
            }
        )
        for first in range(0, outline.members, STEP)
    ]


def taken_out(work: Work, shelf: Blobs, parser: Parser) -> dict[str, Any]:
    """The result of a slice: name, digest and size of each file whose format is supported, in order."""
    form = Format(str(work.payload["format"]))
    path = shelf.path(work.content)
    members = parser.members(path, form)
    files: list[list[Any]] = []
    for number in range(int(work.payload["first"]), int(work.payload["last"]) + 1):
        work.check()
        name = members[number].name
        with shelf.draft() as file:
            size = parser.extract(path, form, number, file)
            file.seek(0)
            head = file.read(sniff.HEAD)
            file.seek(0)
            try:
                if not parser.takes_anything:
                    sniff.check_head(head)
            except HoldfastError:
                work.note(f"left out {name!r:.120}: its format is not supported")
                continue
            if size:
                files.append([name, shelf.put(file).digest, size])
    return {"format": form.value, "members": files}


def published(tx: Tx, claim: Claim, results: Iterable[Mapping[str, Any]], quota: Quota) -> int:
    """The files of the results are documents inside the one that is published; how many they are."""
    files = [file for result in results for file in result.get("members", ())]
    name = subjects.document_id(claim.subject)
    if not files and (claim.generation == 1 or not document_members.has_any(tx, claim.tenant, name)):
        return 0
    row = tx.one(documents.DOCUMENT, {"tenant": claim.tenant, "id": name})
    if row is None:
        return 0
    container = documents.of_row(row._asdict())
    drafts = _drafts(tx, container, files)
    actor, max_cost = document_members.requested_as(tx, claim.run_id)
    options = dict(claim.options)

    def ask(document: Document) -> Ask:
        request = Ask(
            kind=claim.kind,
            subject=subjects.of_document(document.id),
            content=document.digest,
            options={**options, "name": document.name},
            tenant=claim.tenant,
            collection=document.collection,
            lane=claim.lane,
            priority=claim.priority,
            pipeline=claim.pipeline,
            actor=actor,
            max_cost=max_cost,
        ).checked()
        return edited_chunks.with_edits(request, document.edits)

    request = IndexRequest(ask, tx.db.token, SilenceLimits())
    document_members.put(tx, container, drafts, request, quota, actor)
    return len(files)


def _drafts(tx: Tx, container: Document, files: Sequence[Sequence[Any]]) -> list[DocumentDraft]:
    by_digest = {str(digest): (str(name), int(size)) for name, digest, size in reversed(files)}
    return [
        DocumentDraft(
            tx.db.token()[:16],
            name.rsplit("/", 1)[-1][:MOST_TITLE],
            DocumentSource(digest, size, document_members.SOURCE, name=name),
            container.options or None,
            container.metadata or None,
            container.labels,
            title_given=False,
        )
        for digest, (name, size) in by_digest.items()
    ]
