"""Passwords of protected documents: kept in the clear, read by the worker that parses, shown to nobody.

A password belongs to bytes: any parse of the same content for the same tenant may use it.
"""

from sqlalchemy import bindparam, select, update

from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import documents

SET = (
    update(documents)
    .where(documents.c.tenant == bindparam("b_tenant"), documents.c.id == bindparam("b_id"))
    .values(password=bindparam("b_password"), updated_at=now())
)
OF_CONTENT = (
    select(documents.c.password)
    .where(
        documents.c.digest == bindparam("digest"),
        documents.c.tenant == bindparam("tenant"),
        documents.c.password.is_not(None),
        ~documents.c.deleted,
    )
    .order_by(documents.c.updated_at.desc())
    .limit(1)
)


def put(tx: Tx, tenant: str, document_id: str, password: str | None) -> None:
    """The document has this password; nothing changes if there is none."""
    if password is not None:
        tx.execute(SET, {"b_tenant": tenant, "b_id": document_id, "b_password": password})


def of_content(db: Database, tenant: str, digest: str) -> str | None:
    """The password that was last given for this content of the tenant; None if none was."""
    row = db.first(OF_CONTENT, {"tenant": tenant, "digest": digest})
    return None if row is None else str(row.password)
