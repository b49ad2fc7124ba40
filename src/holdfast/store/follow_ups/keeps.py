"""Actions that keep what is derived from a collection up to date: what has changed, and when to run.

`publish_seq` of a collection rises in every transaction that changes what readers see of it. The sweep
compares it with what it has seen, and writes down when a run is due: after the quiet time, but no later than
`LONGEST` times that after the first change. So nothing is written where documents are published, a crash
between a publication and the request loses nothing, and any number of changes is one run.

The run is an ordinary job. A process that dies between its request and `settle` leaves the row due: it is
requested again, which is a duplicate or finds it unchanged. A publication of the job itself is a change, too,
and ends in the same way.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Double, and_, bindparam, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import actions, collections, follow_ups, keeps, runs

LONGEST = 10.0
# A change this far in the future was written before the database's clock was set back.
CLOCK_SLACK = 5.0
MOST_MESSAGE = 500

_collection = and_(collections.c.tenant == keeps.c.tenant, collections.c.id == keeps.c.collection)
_changed = collections.c.publish_seq != keeps.c.seen_seq
_due = or_(keeps.c.due_at <= now(), keeps.c.changed_at > now() + CLOCK_SLACK)
HAS_WORK = exists(select(keeps.c.action_id).join_from(keeps, collections, _collection).where(_changed | _due))


@dataclass(frozen=True, slots=True)
class Keep:
    """An action that has something to see or to do. `kind` is what it keeps up to date."""

    action_id: int
    tenant: str
    collection: str
    options: Mapping[str, Any]
    seen_seq: int
    publish_seq: int
    is_due: bool

    @property
    def kind(self) -> str:
        """The kind that is requested."""
        return str(self.options["sort"]).partition(":")[2]

    @property
    def quiet(self) -> float:
        """For how many seconds nothing may have changed before it runs."""
        return float(self.options["quiet_seconds"])


WITH_WORK = (
    select(
        keeps.c.action_id,
        keeps.c.tenant,
        keeps.c.collection,
        actions.c.options,
        keeps.c.seen_seq,
        collections.c.publish_seq,
        func.coalesce(_due, False).label("is_due"),
    )
    .select_from(keeps.join(collections, _collection).join(actions, actions.c.id == keeps.c.action_id))
    .where(_changed | _due)
    .order_by(keeps.c.due_at, keeps.c.action_id)
    .limit(bindparam("limit"))
)


def with_work(db: Database, limit: int) -> list[Keep]:
    """Actions whose collection has changed, or whose run is due, at most `limit`."""
    rows = db.look(WITH_WORK, {"limit": limit})
    return [Keep(**row._asdict() | {"is_due": bool(row.is_due)}) for row in rows]


# `existing` documents are a change: it is due at once. The counter is read with the row that sees it.
NEW = upsert(keeps).from_select(
    ["action_id", "tenant", "collection", "seen_seq", "changed_at", "due_at"],
    select(
        bindparam("b_action", type_=keeps.c.action_id.type),
        collections.c.tenant,
        collections.c.id,
        collections.c.publish_seq,
        now() + bindparam("b_existing", type_=Double),
        now() + bindparam("b_existing", type_=Double),
    ).where(collections.c.tenant == bindparam("b_tenant"), collections.c.id == bindparam("b_collection")),
)
ADD = NEW.on_conflict_do_nothing()
DUE_NOW = (
    update(keeps)
    .where(keeps.c.action_id == bindparam("b_action"))
    .values(changed_at=func.coalesce(keeps.c.changed_at, now()), due_at=now())
)


def add(tx: Tx, action_id: int, tenant: str, collection: str, *, existing: bool) -> None:
    """The new action sees changes from now on; its first run is due if documents that exist count."""
    about = {"b_action": action_id, "b_tenant": tenant, "b_collection": collection}
    tx.execute(ADD, about | {"b_existing": 0.0 if existing else None})


def add_again(tx: Tx, action_id: int) -> None:
    """A run of the action is due."""
    tx.execute(DUE_NOW, {"b_action": action_id})


REMOVE = delete(keeps).where(keeps.c.action_id == bindparam("b_action"))


def remove(tx: Tx, action_id: int) -> None:
    """The action sees nothing any more."""
    tx.execute(REMOVE, {"b_action": action_id})


_mine = keeps.c.action_id == bindparam("b_action"), keeps.c.seen_seq == bindparam("b_seen")
SEE = (
    update(keeps)
    .where(*_mine)
    .values(
        seen_seq=bindparam("b_seq"),
        changed_at=func.coalesce(keeps.c.changed_at, now()),
        due_at=now() + bindparam("b_quiet", type_=Double),
    )
)
NOT_LATER = (
    update(keeps)
    .where(
        keeps.c.action_id == bindparam("b_action"),
        keeps.c.due_at > keeps.c.changed_at + bindparam("b_longest", type_=Double),
    )
    .values(due_at=keeps.c.changed_at + bindparam("b_longest", type_=Double))
)


IS_DUE = select(func.coalesce(_due, False)).where(keeps.c.action_id == bindparam("action_id"))


def see(db: Database, keep: Keep) -> Keep | None:
    """The action with its change seen: its run is due after the quiet time, or now if it has waited longest.

    None if another sweeper saw it first.
    """
    name = {"b_action": keep.action_id}
    longest = {"b_longest": LONGEST * keep.quiet}

    def body(tx: Tx) -> Keep | None:
        values = {"b_seen": keep.seen_seq, "b_seq": keep.publish_seq, "b_quiet": keep.quiet}
        if tx.execute(SEE, name | values).rowcount != 1:
            return None
        tx.execute(NOT_LATER, name | longest)
        is_due = bool(tx.execute(IS_DUE, {"action_id": keep.action_id}).scalar())
        return replace(keep, seen_seq=keep.publish_seq, is_due=is_due)

    return db.write("see_change", body)


SETTLE = (
    update(keeps)
    .where(*_mine)
    .values(
        changed_at=None,
        due_at=now() + bindparam("b_delay", type_=Double),
        error_code=bindparam("b_code"),
        error_message=bindparam("b_message"),
    )
)
POSTPONE = update(keeps).where(*_mine).values(changed_at=now(), due_at=now() + bindparam("b_delay"))


def settle(db: Database, keep: Keep, error: tuple[str, str] | None, again_after: float | None) -> None:
    """All changes that were seen are dealt with, or could not be; then it is tried again after a while."""
    code, message = (None, None) if error is None else (error[0], error[1][:MOST_MESSAGE])
    values = {"b_action": keep.action_id, "b_seen": keep.seen_seq, "b_delay": again_after}
    db.write("settle_keep", lambda tx: tx.execute(SETTLE, values | {"b_code": code, "b_message": message}))


def postpone(db: Database, keep: Keep) -> None:
    """A job is under way: it is looked at again after the quiet time."""
    values = {"b_action": keep.action_id, "b_seen": keep.seen_seq, "b_delay": keep.quiet}
    db.write("postpone_keep", lambda tx: tx.execute(POSTPONE, values))


ACTOR = select(runs.c.actor).where(runs.c.id == bindparam("run_id"))
STARTED = upsert(follow_ups).on_conflict_do_nothing()


def note_run(db: Database, keep: Keep, head_id: int, generation: int, run_id: str, actor: str) -> None:
    """The run counts as one of the action's, if it was the action that requested it."""
    about = {"action_id": keep.action_id, "head_id": head_id, "generation": generation, "run_id": run_id}

    def body(tx: Tx) -> None:
        if tx.execute(ACTOR, {"run_id": run_id}).scalar() == actor:
            tx.execute(STARTED, about)

    db.write("note_keep", body)
