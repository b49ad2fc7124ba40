"""Relays: the processes that carry orders for workers, and how it is known that one is gone.

Why nothing is sent by a relay that others have given up (G5): it marks an order only while it shares the lock
of its own row and finds itself not gone, and it writes the first byte only while it trusts its lease by its
own clock. Who gives it up locks the row for change, so a mark either commits before the burial, and then its
order is doubted, or it is refused. Time alone is no fence: an expired lease may be renewed until the burial.

A burial takes two looks, seconds apart, or proof: a relay holds the lock of its lock file for as long as it
lives, so obtaining it proves its death. A relay that was buried by mistake takes a new id, and still settles
what it sent before.

Not covered: a relay whose clock runs more than the margin of its lease slower than that of the database.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, delete, exists, insert, select, update

from holdfast.core import decide
from holdfast.core.states import PRESENT, CallState, GoneBy, RelayState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import orders, relays

# Seconds between the two looks of a burial.
SUSPECTED_FOR = 5.0
# A lease that ends sooner than this was not renewed in time: only then is the lock of its relay tried.
RENEWED_BEFORE = 6.0
FORGOTTEN_AFTER = 86_400.0
BATCH = 200
_present = relays.c.state.in_([literal(state) for state in sorted(PRESENT)])


@dataclass(frozen=True, slots=True)
class LockFile:
    """A file whose lock a relay holds for as long as it lives."""

    path: str
    device: str
    inode: str


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay as others see it. `silence`: seconds since its lease ended, negative while it runs."""

    id: str
    name: str
    address: str
    version: str
    state: RelayState
    carrying: int
    started_at: float
    silence: float
    suspected: float | None
    lock: LockFile


REGISTER = insert(relays).values(
    id=bindparam("b_id"),
    name=bindparam("b_name"),
    address=bindparam("b_address"),
    version=bindparam("b_version"),
    state=literal(RelayState.UP),
    lease_until=now() + bindparam("b_ttl"),
    lock_path=bindparam("b_path"),
    lock_device=bindparam("b_device"),
    lock_inode=bindparam("b_inode"),
    started_at=now(),
)
KNOWN = select(relays.c.id).where(relays.c.id == bindparam("relay_id"))


def register(
    db: Database, relay_id: str, *, name: str, address: str, version: str, lock: LockFile, ttl: float
) -> None:
    """The relay is up, with a lease of `ttl` seconds. It must hold the lock of its file already."""
    values = {"b_id": relay_id, "b_name": name, "b_address": address, "b_version": version, "b_ttl": ttl}
    where = {"b_path": lock.path, "b_device": lock.device, "b_inode": lock.inode}

    def body(tx: Tx) -> None:
        if not (tx.again and tx.one(KNOWN, {"relay_id": relay_id})):
            tx.execute(REGISTER, values | where)

    db.write("register_relay", body)


RENEW = (
    update(relays)
    .where(relays.c.id == bindparam("b_id"), _present)
    .values(lease_until=now() + bindparam("b_ttl"), suspect_at=None, carrying=bindparam("b_carrying"))
)


def renew(db: Database, relay_id: str, *, ttl: float, carrying: int = 0) -> bool:
    """True if the lease runs for `ttl` seconds and nobody suspects the relay; False if it is gone.

    An expired lease is renewed too: the burial is the fence, not the time.
    """
    values = {"b_id": relay_id, "b_ttl": ttl, "b_carrying": carrying}
    return bool(db.write("renew_relay", lambda tx: tx.execute(RENEW, values).rowcount, relaxed=True))


DRAIN = (
    update(relays)
    .where(relays.c.id == bindparam("b_id"), relays.c.state == literal(RelayState.UP))
    .values(state=literal(RelayState.DRAINING))
)


def drain(db: Database, relay_id: str) -> None:
    """The relay takes no new orders; what it carries it ends."""
    db.write("drain_relay", lambda tx: tx.execute(DRAIN, {"b_id": relay_id}))


RELAY_FOR_MARK = (
    select(relays.c.state)
    .where(relays.c.id == bindparam("relay_id"))
    # Shares the row with renewals, which change no key; keeps a burial out until the mark has committed.
    .with_for_update(read=True, key_share=True)
)


def is_present(tx: Tx, relay_id: str) -> bool:
    """True if the relay is not gone, and will not be until this transaction ends."""
    row = tx.one(RELAY_FOR_MARK, {"relay_id": relay_id})
    return row is not None and row.state != RelayState.GONE


_columns = (
    relays.c.id,
    relays.c.name,
    relays.c.address,
    relays.c.version,
    relays.c.state,
    relays.c.carrying,
    relays.c.started_at,
    (now() - relays.c.lease_until).label("silence"),
    (now() - relays.c.suspect_at).label("suspected"),
    relays.c.lock_path,
    relays.c.lock_device,
    relays.c.lock_inode,
)
ALL_PRESENT = select(*_columns).where(_present).order_by(relays.c.lease_until).limit(BATCH)
RELAY_FOR_CHANGE = select(*_columns).where(relays.c.id == bindparam("relay_id")).with_for_update()
SUSPECT = update(relays).where(relays.c.id == bindparam("b_id")).values(suspect_at=now())
GONE = (
    update(relays)
    .where(relays.c.id == bindparam("b_id"), _present)
    .values(state=literal(RelayState.GONE), gone_at=now(), gone_by=bindparam("b_by"), carrying=0)
)


def _relay(row: Row[Any]) -> Relay:
    lock = LockFile(row.lock_path, row.lock_device, row.lock_inode)
    return Relay(
        row.id,
        row.name,
        row.address,
        row.version,
        RelayState(row.state),
        row.carrying,
        row.started_at,
        row.silence,
        row.suspected,
        lock,
    )


def present(db: Database) -> Sequence[Relay]:
    """The relays that are not gone."""
    return [_relay(row) for row in db.look(ALL_PRESENT)]


def leave(db: Database, relay_id: str) -> None:
    """The relay, which has settled all that it carried, is gone by its own word."""
    db.write("leave_relay", lambda tx: tx.execute(GONE, {"b_id": relay_id, "b_by": GoneBy.ITSELF.value}))


HAS_SILENT = exists().where(_present, relays.c.lease_until < now() + RENEWED_BEFORE)


def bury(
    db: Database,
    is_dead: Callable[[LockFile], bool],
    *,
    grace: bool = False,
    wait: float = SUSPECTED_FOR,
) -> list[str]:
    """Relays that are gone are recorded as gone, and silent ones as suspects. Returns the ids of the gone.

    `is_dead` says whether the lock of a relay is provably free. `grace`: the database was unreachable.
    """
    gone = []
    for seen in present(db):
        proven = is_dead(seen.lock)
        if proven or seen.silence > 0:
            gone += _buried(db, seen.id, proven=proven, grace=grace, wait=wait)
    return gone


def _buried(db: Database, relay_id: str, *, proven: bool, grace: bool, wait: float) -> list[str]:
    def body(tx: Tx) -> list[str]:
        row = tx.one(RELAY_FOR_CHANGE, {"relay_id": relay_id})
        if row is None or row.state == RelayState.GONE:
            return []
        match decide.bury(
            silence=row.silence, suspected=row.suspected, proven=proven, grace=grace, wait=wait
        ):
            case decide.Burial.SUSPECT:
                tx.execute(SUSPECT, {"b_id": relay_id})
            case decide.Burial.BURY:
                by = GoneBy.LOCK if proven else GoneBy.LEASE
                tx.execute(GONE, {"b_id": relay_id, "b_by": by.value})
                return [relay_id]
        return []

    return db.write("bury_relay", body)


CARRIED = (
    select(orders.c.id)
    .where(
        orders.c.state.in_([literal(CallState.INTENT), literal(CallState.SENT)]),
        orders.c.carrier == bindparam("carrier"),
    )
    .limit(BATCH)
)


def carried_by(db: Database, relay_id: str) -> list[str]:
    """The orders that the relay has marked and nobody has ended."""
    return [row.id for row in db.look(CARRIED, {"carrier": relay_id})]


_gone_long_ago = (
    relays.c.state == literal(RelayState.GONE),
    relays.c.lease_until < now() - bindparam("b_older"),
)
_old = (
    select(relays.c.id)
    .where(
        *_gone_long_ago,
        relays.c.id.not_in(
            select(orders.c.carrier).where(
                orders.c.state.in_([literal(CallState.INTENT), literal(CallState.SENT)]),
                orders.c.carrier.is_not(None),
            )
        ),
    )
    .order_by(relays.c.lease_until)
    .limit(BATCH)
)
FORGET = delete(relays).where(relays.c.id.in_(_old))
OLD = select(relays.c.id).where(*_gone_long_ago).order_by(relays.c.lease_until).limit(1)


def forget(db: Database) -> int:
    """Relays that have been gone for a day, with nothing left of theirs, are deleted. Returns how many."""
    values = {"b_older": FORGOTTEN_AFTER}
    if db.first(OLD, values) is None:
        return 0
    return db.write("forget", lambda tx: tx.execute(FORGET, values).rowcount)
