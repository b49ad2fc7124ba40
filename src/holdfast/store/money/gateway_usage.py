"""What was asked of the gateway, by key, scope and model; its slowest requests and its errors.

Each gateway process counts in memory and writes its totals of the hour every second, so that an answer from
the ledger costs no write. A process that is killed loses the counts of its last second. What was *paid* is in
the bill, not here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any

from sqlalchemy import BigInteger, bindparam, cast, delete, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import gateway_notes, gateway_usage

HOUR = 3600
NOTES_KEPT = 7 * 86_400.0
BATCH = 1000


@dataclass(frozen=True, slots=True)
class UsageKey:
    """Who asked for what, in which hour since 1970 and of which gateway process."""

    tenant: str
    hour: int
    gateway: str
    key_id: str
    scope: str
    provider: str
    endpoint: str
    model: str


@dataclass(slots=True)
class UsageCounts:
    """What came of the requests. `saved` is what the reused calls had cost, in nano-dollars."""

    requests: int = 0
    reused: int = 0
    waited: int = 0
    errors: int = 0
    reused_calls: int = 0
    saved: int = 0
    millis: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """A request that was slow, or that failed. `at` is set by the database."""

    id: str
    tenant: str
    kind: str
    key_id: str
    scope: str
    endpoint: str
    model: str
    status: int
    code: str
    millis: int
    order_id: str | None = None
    at: float = 0.0


_COUNTED = [field.name for field in fields(UsageCounts)]
_new = upsert(gateway_usage).values(
    **{name: bindparam(f"b_{name}") for name in (*UsageKey.__dataclass_fields__, *_COUNTED)}
)
WRITE = _new.on_conflict_do_update(
    index_elements=list(gateway_usage.primary_key.columns),
    set_={name: _new.excluded[name] for name in _COUNTED},
)
_NOTED = [name for name in Note.__dataclass_fields__ if name != "at"]
NOTE = (
    upsert(gateway_notes)
    .values(at=now(), **{name: bindparam(f"b_{name}") for name in _NOTED})
    .on_conflict_do_nothing()
)


def write(db: Database, totals: Mapping[UsageKey, UsageCounts], notes: Sequence[Note]) -> None:
    """The totals of this process are these, and the notes are kept."""
    rows = [
        {f"b_{name}": value for name, value in {**asdict(key), **asdict(each)}.items()}
        for key, each in sorted(totals.items(), key=lambda pair: astuple(pair[0]))
    ]
    noted = [{f"b_{name}": getattr(note, name) for name in _NOTED} for note in notes]

    def body(tx: Tx) -> None:
        if rows:
            tx.execute(WRITE, rows)
        if noted:
            tx.execute(NOTE, noted)

    if rows or noted:
        db.write("gateway_count", body, relaxed=True)


OLD = (
    select(gateway_notes.c.id)
    .where(gateway_notes.c.at < now() - bindparam("older"))
    .order_by(gateway_notes.c.at)
    .limit(BATCH)
)
FORGET = delete(gateway_notes).where(key_in(gateway_notes.c.id, bindparam("ids", type_=KeyList())))


def prune(db: Database) -> int:
    """Notes of last week are deleted. Returns how many."""
    old = [row.id for row in db.look(OLD, {"older": NOTES_KEPT})]
    if old:
        db.write("gateway_prune", lambda tx: tx.execute(FORGET, {"ids": old}), relaxed=True)
    return len(old)


@dataclass(frozen=True, slots=True)
class UsageLine:
    """The counts of one group; `about` is its name."""

    about: str
    counts: UsageCounts


_sums = [func.coalesce(func.sum(gateway_usage.c[name]), 0).label(name) for name in _COUNTED]
_recent = [
    gateway_usage.c.tenant == bindparam("tenant"),
    # A whole number, as the column is: otherwise PostgreSQL would compare fractions, without the index.
    gateway_usage.c.hour > cast(func.floor(now() / HOUR), BigInteger) - bindparam("hours", type_=BigInteger),
]
TOTAL = select(*_sums).where(*_recent)
BY = {
    name: select(gateway_usage.c[name].label("about"), *_sums)
    .where(*_recent)
    .group_by(gateway_usage.c[name])
    .order_by(func.sum(gateway_usage.c.requests).desc(), gateway_usage.c[name])
    .limit(bindparam("most"))
    for name in ("key_id", "scope", "endpoint", "model")
}
SLOWEST = (
    select(gateway_notes)
    .where(
        gateway_notes.c.tenant == bindparam("tenant"),
        gateway_notes.c.kind == "slow",
        gateway_notes.c.at > now() - bindparam("seconds"),
    )
    .order_by(gateway_notes.c.millis.desc())
    .limit(bindparam("most"))
)
ERRORS = (
    select(gateway_notes)
    .where(
        gateway_notes.c.tenant == bindparam("tenant"),
        gateway_notes.c.kind == "error",
        gateway_notes.c.at > now() - bindparam("seconds"),
    )
    .order_by(gateway_notes.c.at.desc())
    .limit(bindparam("most"))
)


@dataclass(frozen=True, slots=True)
class GatewayReport:
    """The requests of a tenant over some hours."""

    sums: UsageCounts
    by_key: tuple[UsageLine, ...]
    by_scope: tuple[UsageLine, ...]
    by_endpoint: tuple[UsageLine, ...]
    by_model: tuple[UsageLine, ...]
    slowest: tuple[Note, ...]
    errors: tuple[Note, ...]


def report(db: Database, tenant: str, *, hours: int, most: int) -> GatewayReport:
    """What was asked and saved in these hours, the current one included; at most so many rows of each."""
    values = {"tenant": tenant, "hours": hours}

    def body(tx: Tx) -> GatewayReport:
        groups = {
            name: tuple(UsageLine(row.about, _counts(row)) for row in tx.all(query, {**values, "most": most}))
            for name, query in BY.items()
        }
        span = {"tenant": tenant, "seconds": hours * HOUR, "most": most}
        return GatewayReport(
            _counts(tx.execute(TOTAL, values).one()),
            groups["key_id"],
            groups["scope"],
            groups["endpoint"],
            groups["model"],
            tuple(_note(row) for row in tx.all(SLOWEST, span)),
            tuple(_note(row) for row in tx.all(ERRORS, span)),
        )

    return db.read(body)


def _counts(row: Any) -> UsageCounts:
    return UsageCounts(*(int(getattr(row, name)) for name in _COUNTED))


def _note(row: Any) -> Note:
    return Note(**{name: getattr(row, name) for name in Note.__dataclass_fields__})
