"""What people changed in the chunks of documents: text replaced, chunks switched off.

A published chunk is never changed. An edit is stored beside the document and requested as a new generation in
the same transaction; that generation is indexed with the edits, and published whole. The head is locked
before the edits are read, so that two people who edit at the same time both have their edit in the later
generation. The run does not carry the edits, only their fingerprint: a change of them makes a new
generation, so the edits of a run that may still publish are those in the table.
"""

import dataclasses
from dataclasses import dataclass

from sqlalchemy import bindparam, update

from holdfast.core import chunk_edits, subjects
from holdfast.core.chunk_edits import EditMark
from holdfast.core.errors import BadRequestError
from holdfast.core.records import RequestResult, expect
from holdfast.core.states import Disposition, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import documents as documents_table
from holdfast.store.library import chunk_edits as edit_rows
from holdfast.store.library import document_requests, documents, quotas
from holdfast.store.library.chunk_edits import ChunkEdit
from holdfast.store.library.document_requests import IndexRequest
from holdfast.store.library.documents import DOCUMENT, DOCUMENT_LOCKED, Document, no_document
from holdfast.store.library.quotas import UNLIMITED, Quota

# Their marks are read with every edit, under the lock of the head.
MOST_EDITS = 5_000


@dataclass(frozen=True, slots=True)
class ChunkChange:
    """What a person wants of a chunk; a text of None is the original. Without `has_text` the text stays."""

    enabled: bool | None = None
    text: str | None = None
    has_text: bool = False

    def of(self, edit: ChunkEdit) -> ChunkEdit:
        """The edit as it is with this change."""
        text = edit.text if not self.has_text else self.text
        enabled = edit.enabled if self.enabled is None else self.enabled
        return dataclasses.replace(edit, text=None if text == edit.original else text, enabled=enabled)


SET_FINGERPRINT = (
    update(documents_table)
    .where(documents_table.c.tenant == bindparam("b_tenant"), documents_table.c.id == bindparam("b_id"))
    .values(edits=bindparam("b_edits"), updated_at=now())
)


def change(
    db: Database,
    document: Document,
    target: ChunkEdit,
    chunk_change: ChunkChange,
    request: IndexRequest,
    *,
    actor: str,
    quota: Quota = UNLIMITED,
    expect_generation: int | None = None,
) -> RequestResult:
    """The chunk of `target` is changed, and the document requested with all its edits, in one transaction.

    `target` says how the chunk would be without any edit; one that is stored precedes it. The same change
    again is no new generation. If the request is refused nothing changes. NotFoundError if the document is
    deleted meanwhile, GenerationMovedError if it is not at the expected generation, BadRequestError
    `too_many_edits` and QuotaExceededError if there would be too much.
    """
    name = document.tenant, document.id
    where = {"tenant": document.tenant, "id": document.id}

    def body(tx: Tx) -> RequestResult:
        head = {"tenant": document.tenant, "kind": subjects.INDEX}
        locked_head = tx.one(
            rows.HEAD_BY_SUBJECT_FOR_CHANGE, head | {"subject": subjects.of_document(document.id)}
        )
        row = tx.one(DOCUMENT, where)
        if locked_head is None or locked_head.deleted or row is None:
            raise no_document(document.id)
        before = documents.of_row(row._asdict())
        request.access.check(before)
        expect(before.generation, expect_generation)
        known = {
            (each.digest, each.context): each
            for each in tx.all(edit_rows.MARKS, {"tenant": document.tenant, "document": document.id})
        }
        stored = next(
            (
                each
                for each in edit_rows.some_of(tx, *name, [target.digest])
                if each.context == target.context
            ),
            None,
        )
        new = dataclasses.replace(chunk_change.of(stored or target), actor=actor)
        merged = {
            key: EditMark(each.digest, each.context, each.enabled, each.mark) for key, each in known.items()
        }
        merged.pop(new.mark.key, None)
        if not new.changes_nothing:
            merged[new.mark.key] = new.mark
        if len(merged) > MOST_EDITS:
            message = f"a document has at most {MOST_EDITS:,} edited chunks; upload a corrected file instead"
            raise BadRequestError(message, code="too_many_edits")
        fingerprint = chunk_edits.fingerprint(merged.values())
        answer = document_requests.requested(tx, dataclasses.replace(before, edits=fingerprint), request)
        if answer.disposition is Disposition.REFUSED:
            return answer
        locked = tx.one(DOCUMENT_LOCKED, where)
        if locked is None:
            raise no_document(document.id)
        request.access.check(documents.of_row(locked._asdict()))
        if fingerprint != before.edits:
            _store(tx, name, stored, new, fingerprint)
            _note(tx, before, stored or target, new, answer)
            quotas.check(tx, document.tenant, quota)
        return answer

    return db.write("edit_chunk", body)


def _store(
    tx: Tx, name: tuple[str, str], stored: ChunkEdit | None, new: ChunkEdit, fingerprint: str | None
) -> None:
    if stored is not None or not new.changes_nothing:
        edit_rows.put(tx, name, new)
    tx.execute(SET_FINGERPRINT, {"b_tenant": name[0], "b_id": name[1], "b_edits": fingerprint})


def _note(tx: Tx, document: Document, old: ChunkEdit, new: ChunkEdit, answer: RequestResult) -> None:
    """The journal says who changed which chunk, and how; not its text."""
    if new.changes_nothing:
        reason = "restored"
    elif new.enabled != old.enabled:
        reason = "on" if new.enabled else "off"
    else:
        reason = "text"
    noted = journal.entry(
        Verb.EDIT,
        reason,
        tenant=document.tenant,
        head_id=answer.head_id,
        run_id=answer.run_id,
        generation=answer.generation,
        actor=new.actor,
        data={"document": document.id, "chunk": new.digest, "page": new.page},
    )
    journal.write(tx, noted)
