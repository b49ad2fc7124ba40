"""Carriers: the processes that hold tasks and send orders, and how long each is known to be alive.

A carrier has its own lease, separate from the leases of its tasks. An order can outlive the claim that sent
it: a worker that is shutting down releases its tasks and waits for its responses, and anyone who needs the
same calls waits with it.
"""

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.states import CallState, TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import carriers, orders, tasks

FORGOTTEN_AFTER = 86_400.0
BATCH = 200

_new = upsert(carriers).values(
    id=bindparam("b_id"),
    name=bindparam("b_name"),
    process=bindparam("b_process"),
    parent=bindparam("b_parent"),
    lease_until=now() + bindparam("b_ttl"),
    started_at=now(),
)
KEEP = _new.on_conflict_do_update(
    index_elements=[carriers.c.id], set_={"lease_until": _new.excluded.lease_until}
)


def keep(db: Database, carrier: str, *, name: str, process: str, parent: str, ttl: float) -> None:
    """The carrier is registered and counts as alive for `ttl` seconds from now."""
    values = {"b_id": carrier, "b_name": name, "b_process": process, "b_parent": parent, "b_ttl": ttl}
    db.write("keep", lambda tx: tx.execute(KEEP, values), relaxed=True)


END = (
    update(carriers)
    .where(carriers.c.process == bindparam("b_process"), carriers.c.ended_at.is_(None))
    .values(ended_at=now())
)


def end(tx: Tx, process: str) -> None:
    """The process is recorded as dead, as reported by its parent."""
    tx.execute(END, {"b_process": process})


HOLDING = (
    select(tasks.c.id, tasks.c.epoch, carriers.c.process, carriers.c.parent)
    .join(carriers, carriers.c.id == tasks.c.carrier)
    .where(tasks.c.state == literal(TaskState.RUNNING), carriers.c.process != "")
    .order_by(tasks.c.lease_until)
    .limit(BATCH)
)
_old = (
    select(carriers.c.id)
    .where(
        carriers.c.lease_until < now() - bindparam("b_older"),
        # Two lists, each read once rather than once per carrier.
        carriers.c.id.not_in(
            select(orders.c.carrier).where(
                orders.c.state.in_([literal(CallState.INTENT), literal(CallState.SENT)]),
                orders.c.carrier.is_not(None),
            )
        ),
        carriers.c.id.not_in(
            select(tasks.c.carrier).where(
                tasks.c.state == literal(TaskState.RUNNING), tasks.c.carrier.is_not(None)
            )
        ),
    )
    .order_by(carriers.c.lease_until)
    .limit(BATCH)
)
FORGET = delete(carriers).where(carriers.c.id.in_(_old))
OLD = select(func.min(carriers.c.lease_until) < now() - bindparam("b_older"))


def forget(db: Database) -> int:
    """Carriers that were silent for a day and hold nothing are deleted. Returns how many."""
    values = {"b_older": FORGOTTEN_AFTER}
    if not db.look(OLD, values)[0][0]:
        return 0
    return db.write("forget", lambda tx: tx.execute(FORGET, values).rowcount)
