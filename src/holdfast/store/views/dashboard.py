"""The dashboard: what ended today, what was refused lately."""

from dataclasses import dataclass

from sqlalchemy import BigInteger, bindparam, func, or_, select

from holdfast.core.states import Disposition, Status, Verb
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import now
from holdfast.store.base.journal_order import comes_after
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import journal, runs
from holdfast.store.views import events
from holdfast.store.views.events import Event

DAY = 86_400
# Refusals are searched among this many latest entries: a quiet tenant's journal is not read completely.
LOOKED_AT = 20_000
SHOWN = 20
# The reason of a run that only records a deletion: it indexed nothing.
DELETION = "delete"

_midnight = DAY * func.floor(now() / DAY)
TODAY = (
    select(runs.c.status, func.count().label("number"))
    .where(
        runs.c.finished_at >= _midnight,
        runs.c.tenant == bindparam("tenant"),
        runs.c.kind == bindparam("kind"),
        runs.c.reason != literal(DELETION),
    )
    .group_by(runs.c.status)
)
_REFUSED = [literal(f"{Disposition.DUPLICATE}:in_progress"), literal("refused:generation_mismatch")]
REFUSED = (
    select(journal.c.id)
    .where(
        journal.c.tenant == bindparam("tenant"),
        comes_after(
            journal.c.xid,
            journal.c.id,
            bindparam("floor_xid", type_=BigInteger),
            bindparam("floor_id", type_=BigInteger),
        ),
        or_(
            journal.c.reason.in_(_REFUSED),
            journal.c.reason.like("refused:%"),
            journal.c.reason.like("fenced_out:%"),
            journal.c.verb == literal(Verb.SKIP),
        ),
    )
    .order_by(journal.c.xid.desc(), journal.c.id.desc())
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class Today:
    """How many runs of a kind ended today, by UTC."""

    success: int = 0
    failed: int = 0


def today(db: Database, tenant: str, kind: str) -> Today:
    """The tenant's runs of a kind that ended today."""
    rows = db.read(lambda tx: tx.all(TODAY, {"tenant": tenant, "kind": kind}))
    counted = {row.status: row.number for row in rows}
    return Today(counted.get(Status.SUCCESS, 0), counted.get(Status.FAILED, 0))


def refusals(db: Database, tenant: str, limit: int = SHOWN) -> tuple[Event, ...]:
    """The latest refused requests and fenced-out writes, newest first."""
    floor = events.up_to(db, events.latest(db).id - LOOKED_AT)
    values = {"tenant": tenant, "floor_xid": floor.xid, "floor_id": floor.id, "limit": limit}
    ids = [row.id for row in db.read(lambda tx: tx.all(REFUSED, values))]
    return tuple(reversed(events.these(db, ids)))
