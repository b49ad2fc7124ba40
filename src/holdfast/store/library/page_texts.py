"""What text recognition (OCR) read on pages, so that no page is recognised twice.

Kept per tenant by a key of a page's picture and of how it was read: the same page in another version, in
another document, or after a redelivery is found here. What is stored does not depend on who stores it, so
the write needs no fence; it only happens while the document is there, and goes with it (`PageTextHook`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.core.records import Claim, Head, RunRecord
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Hook, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import page_texts

_mine = page_texts.c.tenant == bindparam("tenant")
READ = select(page_texts.c.key, page_texts.c.head_id, page_texts.c.data).where(
    _mine, key_in(page_texts.c.key, bindparam("keys", type_=KeyList()))
)
KEEP = (
    upsert(page_texts)
    .values(
        tenant=bindparam("b_tenant"),
        key=bindparam("b_key"),
        head_id=bindparam("b_head"),
        data=bindparam("b_data"),
        created_at=now(),
    )
    .on_conflict_do_nothing()
)
TAKE = (
    update(page_texts)
    .where(page_texts.c.tenant == bindparam("b_tenant"), page_texts.c.key == bindparam("b_key"))
    .values(head_id=bindparam("b_head"))
)
DROP = delete(page_texts).where(page_texts.c.head_id == bindparam("b_head"))


def known(db: Database, claim: Claim, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """What is known of these pages, by key; from now on it is kept for this document."""
    texts = db.look(READ, {"tenant": claim.tenant, "keys": list(keys)})
    for row in texts:
        if row.head_id != claim.head_id:
            _write(db, claim, TAKE, {"b_key": row.key})
    return {row.key: row.data for row in texts}


def of_pictures(db: Database, tenant: str, keys: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """What is known of these pages, by key; for readers."""
    return {row.key: row.data for row in db.look(READ, {"tenant": tenant, "keys": list(keys)})}


def keep(db: Database, claim: Claim, key: str, data: Mapping[str, Any]) -> None:
    """The text of a page is known from now on, unless its document was deleted meanwhile."""
    _write(db, claim, KEEP, {"b_key": key, "b_data": dict(data)})


def _write(db: Database, claim: Claim, statement: Any, values: Mapping[str, Any]) -> None:
    def body(tx: Tx) -> None:
        head = tx.one(rows.HEAD_FOR_SHARE, {"head_id": claim.head_id})
        if head is not None and not head.deleted:
            tx.execute(statement, {"b_tenant": claim.tenant, "b_head": claim.head_id, **values})

    db.write("keep_page_text", body)


class PageTextHook(Hook):
    """Recognised pages are deleted with the last document that used them."""

    def after_prune(self, tx: Tx, head: Head, run: RunRecord) -> None:  # noqa: ARG002 (as the hook has it)
        """The pages of a deleted document are gone."""
        if head.deleted and head.kind == subjects.INDEX:
            tx.execute(DROP, {"b_head": head.id})
