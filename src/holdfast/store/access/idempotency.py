"""Responses by idempotency key, so that the same request gets the same response again.

A row is created before the request is carried out and blocks others; the response is added afterwards. A
process that dies in between leaves a row without a response, which the next request with the same key takes
over after a timeout. Not covered: that request is then carried out a second time. This is safe for every
request of the API (the same bytes are one document, the same work is a duplicate), but the response may then
say `duplicate` or `unchanged` where the lost one would have said `accepted`.
"""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import idempotency

KEPT = 86_400.0
# How long a request may take before another with the same key assumes that it died.
PATIENCE = 120.0


class Hold(StrEnum):
    """The state of a key without a response."""

    MINE = "mine"
    OTHERS = "others"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """An earlier response: its HTTP status, and its body as it was sent."""

    status: int
    body: str


_mine = (idempotency.c.tenant == bindparam("b_tenant"), idempotency.c.key == bindparam("b_key"))
_open = (*_mine, idempotency.c.token == bindparam("b_token"), idempotency.c.status.is_(None))
EXPIRED = delete(idempotency).where(*_mine, idempotency.c.created_at < now() - KEPT)
NEW = (
    upsert(idempotency)
    .values(
        tenant=bindparam("b_tenant"),
        key=bindparam("b_key"),
        fingerprint=bindparam("b_fingerprint"),
        token=bindparam("b_token"),
        open_until=now() + PATIENCE,
        created_at=now(),
    )
    .on_conflict_do_nothing()
)
ROW = select(idempotency, now().label("now")).where(*_mine).with_for_update()
TAKE = update(idempotency).where(*_mine).values(token=bindparam("b_new"), open_until=now() + PATIENCE)
SETTLE = update(idempotency).where(*_open).values(status=bindparam("b_status"), answer=bindparam("b_answer"))
LET_GO = delete(idempotency).where(*_open)
FORGET = delete(idempotency).where(idempotency.c.created_at < now() - KEPT)


def begin(db: Database, tenant: str, key: str, fingerprint: str, token: str) -> Hold | StoredResponse:
    """The earlier response under `key`, or whether the request is to be carried out now."""
    where = {"b_tenant": tenant, "b_key": key}

    def body(tx: Tx) -> Hold | StoredResponse:
        tx.execute(EXPIRED, where)
        tx.execute(NEW, where | {"b_fingerprint": fingerprint, "b_token": token})
        row = tx.execute(ROW, where).one()
        if row.fingerprint != fingerprint:
            return Hold.CONFLICT
        if row.status is not None:
            return StoredResponse(row.status, row.answer or "")
        if row.token != token:
            if row.open_until > row.now:
                return Hold.OTHERS
            tx.execute(TAKE, where | {"b_new": token})
        return Hold.MINE

    return db.write("begin_once", body)


def settle(db: Database, tenant: str, key: str, token: str, answer: StoredResponse) -> None:
    """The response is returned for this key for a day, unless the row was taken over."""
    values = {"b_tenant": tenant, "b_key": key, "b_token": token, "b_answer": answer.body}
    db.write("settle_once", lambda tx: tx.execute(SETTLE, {**values, "b_status": answer.status}))


def let_go(db: Database, tenant: str, key: str, token: str) -> None:
    """The request ended without a response: the next one with this key starts afresh."""
    values = {"b_tenant": tenant, "b_key": key, "b_token": token}
    db.write("let_go_once", lambda tx: tx.execute(LET_GO, values))


def forget(db: Database) -> None:
    """Responses older than a day are deleted."""
    db.write("forget_once", lambda tx: tx.execute(FORGET))
