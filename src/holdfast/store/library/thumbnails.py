"""The thumbnail of a document's published generation. It is drawn at the first request."""

from sqlalchemy import bindparam, select, update

from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import documents, runs
from holdfast.store.library.documents import Document

CONTENT = select(runs.c.content).where(
    runs.c.head_id == bindparam("head_id"), runs.c.generation == bindparam("generation")
)
KEEP = (
    update(documents)
    .where(
        documents.c.tenant == bindparam("b_tenant"),
        documents.c.id == bindparam("b_id"),
        documents.c.thumbnail.is_(None),
        ~documents.c.deleted,
    )
    .values(thumbnail=bindparam("b_thumbnail"))
)


def published_content(db: Database, document: Document) -> str | None:
    """The digest of the bytes of the published generation; None if it is not known."""
    if document.generation == document.published_generation:
        return document.digest
    values = {"head_id": document.head_id, "generation": document.published_generation}
    row = db.read(lambda tx: tx.one(CONTENT, values))
    return None if row is None else str(row.content)


def keep(db: Database, document: Document, digest: str) -> bool:
    """The thumbnail belongs to the document; False if another generation was published while it was drawn.

    The head is locked meanwhile, as in a publication; otherwise a thumbnail of the old text could stay.
    """

    def body(tx: Tx) -> bool:
        head = tx.one(rows.HEAD_FOR_SHARE, {"head_id": document.head_id})
        if head is None or head.published_generation != document.published_generation:
            return False
        values = {"b_tenant": document.tenant, "b_id": document.id, "b_thumbnail": digest}
        return tx.execute(KEEP, values).rowcount == 1 or tx.again

    return db.write("keep_thumbnail", body)
