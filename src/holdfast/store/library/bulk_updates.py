"""Bulk updates of a whole collection: started with the change that needs them, continued in the background.

A collection may have a hundred thousand documents, and a request must be quick. So the transaction that
changes a collection also records that its documents are to be processed; some are processed at once, the rest
by the sweep. Processing a document twice is harmless: an interrupted update continues at the last recorded
position.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, delete, exists, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import subjects
from holdfast.core.states import Disposition, Verb
from holdfast.store.base import journal
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import documents, heads, rounds

OPTIONS = "options"
DELETE = "delete"


@dataclass(frozen=True, slots=True)
class BulkUpdate:
    """An unfinished bulk update. `after` is the last document processed."""

    tenant: str
    collection: str
    sort: str
    after: str
    actor: str
    token: str
    max_cost: int | None = None


_COLUMNS = [rounds.c[name] for name in BulkUpdate.__dataclass_fields__]
_new = upsert(rounds).values(due_at=now())
BEGIN = _new.on_conflict_do_update(
    index_elements=[rounds.c.tenant, rounds.c.collection, rounds.c.sort],
    set_={name: _new.excluded[name] for name in ("after", "actor", "token", "due_at", "max_cost")},
)
ONE = select(*_COLUMNS).where(
    rounds.c.tenant == bindparam("tenant"),
    rounds.c.collection == bindparam("collection"),
    rounds.c.sort == bindparam("sort"),
)
DUE = select(*_COLUMNS).where(rounds.c.due_at <= now()).order_by(rounds.c.due_at).limit(bindparam("limit"))
HAS_DUE = exists().where(rounds.c.due_at <= now())
_mine = (
    rounds.c.tenant == bindparam("b_tenant"),
    rounds.c.collection == bindparam("b_collection"),
    rounds.c.sort == bindparam("b_sort"),
    rounds.c.token == bindparam("b_token"),
)
STEP = update(rounds).where(*_mine).values(after=bindparam("b_after"), due_at=now() + bindparam("b_pause"))
END = delete(rounds).where(*_mine)
FORGET = delete(rounds).where(
    rounds.c.tenant == bindparam("tenant"),
    rounds.c.collection == bindparam("collection"),
    rounds.c.sort == bindparam("sort"),
)


def begin(
    tx: Tx,
    tenant: str,
    collection: str,
    kind: str,
    *,
    actor: str,
    token: str,
    max_cost: int | None = None,
) -> BulkUpdate:
    """Every document of the collection is to be processed, from the first one on.

    The run of each may spend `max_cost`.
    """
    begun = BulkUpdate(tenant, collection, kind, "", actor, token, max_cost)
    tx.execute(BEGIN, {name: getattr(begun, name) for name in BulkUpdate.__dataclass_fields__})
    return begun


def forget(tx: Tx, tenant: str, collection: str, kind: str) -> None:
    """The bulk update is deleted."""
    tx.execute(FORGET, {"tenant": tenant, "collection": collection, "sort": kind})


def one(db: Database, tenant: str, collection: str, kind: str) -> BulkUpdate | None:
    """The unfinished bulk update, if there is one."""
    values = {"tenant": tenant, "collection": collection, "sort": kind}
    row = db.read(lambda tx: tx.one(ONE, values))
    return None if row is None else BulkUpdate(**row._asdict())


def due(db: Database, limit: int) -> list[BulkUpdate]:
    """Bulk updates that are due, the one that has waited longest first."""
    return [BulkUpdate(**row._asdict()) for row in db.look(DUE, {"limit": limit})]


def _name(which: BulkUpdate) -> dict[str, Any]:
    return {
        "b_tenant": which.tenant,
        "b_collection": which.collection,
        "b_sort": which.sort,
        "b_token": which.token,
    }


def step(db: Database, which: BulkUpdate, after: str, *, pause: float = 0.0) -> None:
    """The update continues after `after`, not before `pause` seconds; no effect if it was restarted."""
    values = _name(which) | {"b_after": after, "b_pause": pause}
    db.write("step_round", lambda tx: tx.execute(STEP, values))


def end(db: Database, which: BulkUpdate) -> None:
    """The update is finished; no effect if it was restarted."""
    db.write("end_round", lambda tx: tx.execute(END, _name(which)))


def note_skipped(db: Database, which: BulkUpdate, head_id: int | None, code: str, message: str) -> None:
    """The journal of the document says why the update could not request it."""
    noted = journal.entry(
        Verb.REQUEST,
        f"{Disposition.REFUSED}:{code}",
        tenant=which.tenant,
        head_id=head_id,
        actor=which.actor,
        data={"round": which.token, "message": message},
    )
    db.write("skip_in_round", lambda tx: journal.once(tx, noted))


_live = ~documents.c.deleted
_in_collection = (
    documents.c.tenant == bindparam("tenant"),
    documents.c.collection == bindparam("collection"),
)
UNASKED = select(func.count()).where(*_in_collection, documents.c.id > bindparam("after"), _live)
# Documents whose row is deleted and whose work has not ended. A deleted row never comes back, so this matches
# nothing of a collection that was created again under the same name.
_remains = documents.join(
    heads,
    and_(
        heads.c.tenant == documents.c.tenant,
        heads.c.kind == subjects.INDEX,
        heads.c.subject == literal(subjects.DOCUMENT) + documents.c.id,
        ~heads.c.deleted,
    ),
)
REMAINS = (
    select(documents.c.id)
    .select_from(_remains)
    .where(*_in_collection, documents.c.deleted, documents.c.id > bindparam("after"))
    .order_by(documents.c.id)
    .limit(bindparam("limit"))
)
REMAINING = select(func.count()).select_from(_remains).where(*_in_collection, documents.c.deleted)


def left(db: Database, which: BulkUpdate) -> int:
    """How many documents the update still has to process."""
    values = {"tenant": which.tenant, "collection": which.collection}
    query = REMAINING if which.sort == DELETE else UNASKED
    more = {} if which.sort == DELETE else {"after": which.after}
    number: int = db.read(lambda tx: tx.execute(query, values | more).scalar_one())
    return number


def remains(db: Database, tenant: str, collection: str, *, after: str, limit: int) -> list[str]:
    """Deleted documents of the collection, after the id `after`, whose work has not ended yet."""
    return db.read(lambda tx: remaining(tx, tenant, collection, after=after, limit=limit))


def remaining(tx: Tx, tenant: str, collection: str, *, after: str = "", limit: int = 1) -> list[str]:
    """Like `remains`, inside a transaction."""
    values = {"tenant": tenant, "collection": collection, "after": after, "limit": limit}
    return [row.id for row in tx.all(REMAINS, values)]
