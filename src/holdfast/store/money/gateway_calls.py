"""Requests to the gateway outside a scope: each is a call of its own, until its answer was delivered whole.

Repeating a prompt may be meant, so two requests at a time are two calls. But an answer that nobody has got
(the client hung up, or the gateway died) is an *orphan*, and the next identical request adopts it instead of
paying again. Of several that want it one gets it: the `hold` that was read is compared when it is replaced.

Not covered: a delivery that was not recorded, because the gateway died within a second of it. The next
identical request then gets that answer once more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, insert, or_, select, update

from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import gateway_calls

# Seconds for which a call is held without a sign of life of its gateway; and for which an orphan is kept.
HOLD = 20.0
KEPT = 86_400.0
MOST_READ = 20
BATCH = 500

NEW = insert(gateway_calls).values(
    call=bindparam("b_call"),
    tenant=bindparam("b_tenant"),
    content=bindparam("b_content"),
    process=bindparam("b_process"),
    hold=bindparam("b_hold"),
    held_until=now() + bindparam("b_seconds"),
    created_at=now(),
)
KNOWN = select(gateway_calls.c.call).where(gateway_calls.c.call == bindparam("call"))
SAME_CONTENT = (
    select(
        gateway_calls.c.call,
        gateway_calls.c.process,
        gateway_calls.c.hold,
        or_(gateway_calls.c.held_until.is_(None), gateway_calls.c.held_until < now()).label("orphan"),
    )
    .where(gateway_calls.c.tenant == bindparam("tenant"), gateway_calls.c.content == bindparam("content"))
    .limit(MOST_READ)
)
HOLDER = select(gateway_calls.c.hold).where(gateway_calls.c.call == bindparam("call"))
ADOPT = (
    update(gateway_calls)
    .where(gateway_calls.c.call == bindparam("b_call"), gateway_calls.c.hold == bindparam("b_before"))
    .values(
        process=bindparam("b_process"), hold=bindparam("b_hold"), held_until=now() + bindparam("b_seconds")
    )
)
_mine = key_in(gateway_calls.c.call, bindparam("calls", type_=KeyList()))
RELEASE = (
    update(gateway_calls)
    .where(gateway_calls.c.call == bindparam("b_call"), gateway_calls.c.hold == bindparam("b_hold"))
    .values(held_until=None)
)
RENEW = (
    update(gateway_calls)
    .where(_mine, gateway_calls.c.held_until.is_not(None))
    .values(held_until=now() + bindparam("b_seconds"))
)
END = delete(gateway_calls).where(_mine)
OLD = (
    select(gateway_calls.c.call)
    .where(gateway_calls.c.created_at < now() - bindparam("older"))
    .order_by(gateway_calls.c.created_at)
    .limit(BATCH)
)


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that this process holds: its name, which is part of the content key, and the proof."""

    call: str
    hold: str


def begin(db: Database, tenant: str, content: str, held: HeldCall, process: str) -> None:
    """A new call is held. A power cut may lose it, but only before anything is sent."""
    values = {
        "b_call": held.call,
        "b_tenant": tenant,
        "b_content": content,
        "b_process": process,
        "b_hold": held.hold,
        "b_seconds": HOLD,
    }

    def body(tx: Tx) -> None:
        if not (tx.again and tx.one(KNOWN, {"call": held.call}) is not None):
            tx.execute(NEW, values)

    db.write("gateway_begin", body, relaxed=True)


def adopt(
    db: Database, tenant: str, content: str, hold: str, process: str, has_died: Callable[[str], bool]
) -> HeldCall | None:
    """An orphan with this content is now held by `hold`; None if there is none.

    `has_died` says whether a process has provably ended: what it held is an orphan at once.
    """
    for row in db.look(SAME_CONTENT, {"tenant": tenant, "content": content}):
        if (row.orphan or (row.process != process and has_died(row.process))) and _take(
            db, row.call, row.hold, hold, process
        ):
            return HeldCall(row.call, hold)
    return None


def _take(db: Database, call: str, before: str, hold: str, process: str) -> bool:
    def body(tx: Tx) -> bool:
        if tx.again:
            row = tx.one(HOLDER, {"call": call})
            if row is not None and row.hold == hold:
                return True
        values = {"b_call": call, "b_before": before, "b_hold": hold, "b_process": process, "b_seconds": HOLD}
        return tx.execute(ADOPT, values).rowcount == 1

    return db.write("gateway_adopt", body, relaxed=True)


def release(db: Database, held: HeldCall) -> None:
    """The call is an orphan: nobody has got its answer. Does nothing if another process holds it now."""
    values = {"b_call": held.call, "b_hold": held.hold}
    db.write("gateway_release", lambda tx: tx.execute(RELEASE, values), relaxed=True)


def keep(db: Database, *, held: Sequence[str], delivered: Sequence[str]) -> None:
    """The calls that are held stay so for a while; those that were delivered whole are forgotten."""

    def body(tx: Tx) -> None:
        if delivered:
            tx.execute(END, {"calls": list(delivered)})
        if held:
            tx.execute(RENEW, {"calls": list(held), "b_seconds": HOLD})

    if held or delivered:
        db.write("gateway_keep", body, relaxed=True)


def prune(db: Database) -> int:
    """Orphans of yesterday are forgotten. Returns how many."""
    old = [row.call for row in db.look(OLD, {"older": KEPT})]
    keep(db, held=(), delivered=old)
    return len(old)
