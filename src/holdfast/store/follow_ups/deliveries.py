"""Deliveries: an event, its address and its frozen body, made in the transaction that makes the event true.

Nothing is sent before that transaction commits, for a delivery is work like any other: the head of (webhook,
delivery:<event id>), claimed by a worker, tried until it landed or the time for it is over. Each is a subject
of its own, so that none supersedes another: they arrive at least once, in no order, and the event id tells
a second arrival from a second event. What became of a delivery is the status of its head, kept nowhere else.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, null, select

from holdfast.core import categories, decide, keys
from holdfast.core.records import Ask, Spent
from holdfast.core.states import LIVE, Disposition, Lane, Status, TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import deliveries, heads, runs, tasks
from holdfast.store.money import payments
from holdfast.store.protocol import generations

KIND = "webhook"
VERSION = 1
PIPELINE = f"{KIND}@{VERSION}"
READY = "document.ready"
TEST = "webhook.test"
NANO = 1_000_000_000
ENDINGS = {
    Status.SUCCESS: "job.succeeded",
    Status.FAILED: "job.failed",
    Status.CANCELLED: "job.cancelled",
    Status.SUPERSEDED: "job.superseded",
}


def subject(event_id: str) -> str:
    """The subject of a delivery."""
    return f"delivery:{event_id}"


@dataclass(frozen=True, slots=True)
class EventNotice:
    """What is to be told, to whom; `cause` is the run that made it true, `about` what the body says of it."""

    tenant: str
    event: str
    url: str
    secret: str
    cause: str
    subject: str
    generation: int
    about: Mapping[str, Any]
    action_id: int | None = None


INSERT = insert(deliveries).values(created_at=bindparam("b_at"), since=bindparam("b_at"))


def post(tx: Tx, notice: EventNotice, event_id: str) -> None:
    """The notice will be delivered if this transaction commits. The event's id is that of the run as well."""
    ask = Ask(
        kind=KIND,
        subject=subject(event_id),
        tenant=notice.tenant,
        lane=Lane.FOLLOW_UP,
        pipeline=PIPELINE,
        actor=f"run:{notice.cause}",
    )
    head, at = generations.locked_head(tx, ask)
    generations.insert_run(tx, ask, head.id, 1, decide.Verdict(Disposition.ACCEPTED, notice.event), event_id)
    body = {"id": event_id, "event": notice.event, "at": round(at, 3), **notice.about}
    tx.execute(
        INSERT,
        {
            "b_at": at,
            "id": event_id,
            "head_id": head.id,
            "body": keys.canonical(body).encode("utf-8", "replace"),
            **{name: getattr(notice, name) for name in EventNotice.__dataclass_fields__ if name != "about"},
        },
    )


CALLBACK = (
    select(
        *(runs.c[name] for name in ("tenant", "kind", "subject", "generation", "callback", "result")),
        heads.c.collection,
    )
    .join(heads, heads.c.id == runs.c.head_id)
    .where(runs.c.id == bindparam("run_id"), runs.c.callback.is_not(null()))
)


SLICES = select(tasks.c.state, tasks.c.result, tasks.c.reused_calls, tasks.c.saved).where(
    tasks.c.run_id == bindparam("run_id")
)


def call_back(
    tx: Tx, run_id: str, status: Status, code: str | None = None, message: str | None = None
) -> int:
    """Whoever asked to be told of the end of the run will be, once this transaction has committed.

    Answers how many deliveries that made due: 1, or 0 when nobody asked.
    """
    row = tx.one(CALLBACK, {"run_id": run_id})
    if row is None:
        return 0
    job = {
        "id": run_id,
        "kind": row.kind,
        "subject": row.subject,
        "collection": row.collection,
        "generation": row.generation,
        "status": status.value,
        **_figures(tx, run_id, row.result or {}),
        "error": None if code is None else _error(status, code, message),
        "link": f"{row.callback.get('link', '')}/jobs/{run_id}",
    }
    notice = EventNotice(
        row.tenant,
        ENDINGS[status],
        row.callback["url"],
        row.callback.get("secret") or "",
        run_id,
        row.subject,
        row.generation,
        {"job": job},
    )
    post(tx, notice, tx.db.token())
    return 1


def _error(status: Status, code: str, message: str | None) -> dict[str, str]:
    """Why a run ended as it did; what failed has a category that a program can act on."""
    error = {"code": code, "message": message or ""}
    return error | {"category": categories.of_code(code)} if status is Status.FAILED else error


def _figures(tx: Tx, run_id: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """How many results, what the finished slices add up to, and what it cost, in US dollars."""
    slices = tx.all(SLICES, {"run_id": run_id})
    counts: Counter[str] = Counter()
    for each in slices:
        if each.state == TaskState.DONE:
            counts.update({name: n for name, n in (each.result or {}).items() if type(n) is int})
    spent = payments.by_run(tx, [run_id]).get(run_id, Spent())
    good = int(result.get("good", 0))
    return {
        "results": good,
        "failed_results": int(result.get("results", good)) - good,
        "counts": dict(counts),
        "cost": {
            "paid": None if spent.unpriced else spent.paid / NANO,
            "saved": sum(each.saved for each in slices) / NANO,
            "tokens": spent.tokens,
            "paid_calls": spent.paid_calls,
            "reused_calls": sum(each.reused_calls for each in slices),
            "unpriced_calls": spent.unpriced_calls,
        },
    }


@dataclass(frozen=True, slots=True)
class Parcel:
    """What a try needs: where to, what, signed with what; how many tries before, and for how long by now."""

    url: str
    secret: str
    body: bytes
    event: str
    generation: int
    tries: int
    age: float

    def __repr__(self) -> str:
        return f"Parcel({self.event}, tries={self.tries})"  # neither address nor secret in a log


PARCEL = select(
    *(deliveries.c[name] for name in ("url", "secret", "body", "event", "generation", "tries")),
    (now() - deliveries.c.since).label("age"),
).where(deliveries.c.tenant == bindparam("tenant"), deliveries.c.id == bindparam("id"))


def parcel(db: Database, tenant: str, event_id: str) -> Parcel | None:
    """What is to be sent for the event, if there is such a delivery."""
    rows = db.look(PARCEL, {"tenant": tenant, "id": event_id})
    return Parcel(**rows[0]._asdict()) if rows else None


_oldest = (
    select(deliveries.c.number, deliveries.c.head_id, deliveries.c.created_at)
    .order_by(deliveries.c.number)
    .limit(bindparam("limit"))
    .subquery()
)
DELETE_DELIVERIES = delete(deliveries).where(
    deliveries.c.number.in_(
        select(_oldest.c.number)
        .join(heads, heads.c.id == _oldest.c.head_id)
        .where(
            _oldest.c.created_at < now() - bindparam("older_than"),
            heads.c.status.not_in([status.value for status in sorted(LIVE)]),
        )
    )
)


def prune(tx: Tx, older_than: float, limit: int) -> int:
    """Ended deliveries older than so many seconds are gone, at most `limit`; answers how many."""
    return int(tx.execute(DELETE_DELIVERIES, {"older_than": older_than, "limit": limit}).rowcount)
