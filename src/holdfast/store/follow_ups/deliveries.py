"""Deliveries: an event, its URL and its frozen body, created in the transaction that makes the event true.

Nothing is sent before that transaction commits, because a delivery is work like any other: the head of
(webhook, delivery:<event id>), claimed by a worker, tried until it is delivered or its time is over. Each is
its own subject, so that none supersedes another: they arrive at least once, in no order, and the event id
tells a repeated delivery from a second event. The state of a delivery is the status of its head and is stored
nowhere else.
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
    """What to send and to whom; `cause` is the run that made it true, `about` what the body says about it."""

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
    """The notice will be delivered if this transaction commits. The event and its run have the same id."""
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
    """If the run has a callback, its end will be delivered once this transaction has committed.

    Returns how many deliveries became due: 1, or 0 without a callback.
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
    """Why a run ended as it did; a failure has a category that a program can act on."""
    error = {"code": code, "message": message or ""}
    return error | {"category": categories.of_code(code)} if status is Status.FAILED else error


def _figures(tx: Tx, run_id: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """The number of results, the sums over the finished slices, and the cost in US dollars."""
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
    """What an attempt needs: URL, body and secret; the number of attempts before, and the age."""

    url: str
    secret: str
    body: bytes
    event: str
    generation: int
    tries: int
    age: float

    def __repr__(self) -> str:
        return f"Parcel({self.event}, tries={self.tries})"  # no URL or secret in a log


PARCEL = select(
    *(deliveries.c[name] for name in ("url", "secret", "body", "event", "generation", "tries")),
    (now() - deliveries.c.since).label("age"),
).where(deliveries.c.tenant == bindparam("tenant"), deliveries.c.id == bindparam("id"))


def parcel(db: Database, tenant: str, event_id: str) -> Parcel | None:
    """What to send for the event, if there is such a delivery."""
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
    """Ended deliveries older than so many seconds are deleted, at most `limit`. Returns how many."""
    return int(tx.execute(DELETE_DELIVERIES, {"older_than": older_than, "limit": limit}).rowcount)
