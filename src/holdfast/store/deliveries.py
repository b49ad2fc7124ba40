"""Deliveries: an event, its address and its frozen body, made in the transaction that makes the event true.

Nothing is sent before that transaction commits, for a delivery is work like any other: the head of (webhook,
delivery:<event id>), claimed by a worker, tried until it landed or the time for it is over. Each is a subject
of its own, so that none supersedes another: they arrive at least once, in no order, and the event id tells
a second arrival from a second event. What became of a delivery is the status of its head, kept nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, insert, null, select

from holdfast.core import decide, keys
from holdfast.core.records import Ask
from holdfast.core.states import Disposition, Lane, Status
from holdfast.store import opening
from holdfast.store.database import Database, Tx
from holdfast.store.dialect import now
from holdfast.store.schema import heads, runs
from holdfast.store.schema_follow_ups import deliveries

KIND = "webhook"
VERSION = 1
PIPELINE = f"{KIND}@{VERSION}"
READY = "document.ready"
TEST = "webhook.test"
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
class Notice:
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


def post(tx: Tx, notice: Notice, event_id: str) -> None:
    """The notice will be delivered if this transaction commits. The event's id is that of the run as well."""
    ask = Ask(
        kind=KIND,
        subject=subject(event_id),
        tenant=notice.tenant,
        lane=Lane.FOLLOW_UP,
        pipeline=PIPELINE,
        actor=f"run:{notice.cause}",
    )
    head, at = opening.locked_head(tx, ask)
    opening.insert_run(tx, ask, head.id, 1, decide.Verdict(Disposition.ACCEPTED, notice.event), event_id)
    body = {"id": event_id, "event": notice.event, "at": round(at, 3), **notice.about}
    tx.execute(
        INSERT,
        {
            "b_at": at,
            "id": event_id,
            "head_id": head.id,
            "body": keys.canonical(body).encode("utf-8", "replace"),
            **{name: getattr(notice, name) for name in Notice.__dataclass_fields__ if name != "about"},
        },
    )


CALLBACK = (
    select(runs.c.tenant, runs.c.kind, runs.c.subject, runs.c.generation, runs.c.callback, heads.c.collection)
    .join(heads, heads.c.id == runs.c.head_id)
    .where(runs.c.id == bindparam("run_id"), runs.c.callback.is_not(null()))
)


def call_back(
    tx: Tx, run_id: str, status: Status, *, code: str | None = None, message: str | None = None
) -> None:
    """Whoever asked to be told of the end of the run will be, once this transaction has committed."""
    row = tx.one(CALLBACK, {"run_id": run_id})
    if row is None:
        return
    job = {
        "id": run_id,
        "kind": row.kind,
        "subject": row.subject,
        "collection": row.collection,
        "generation": row.generation,
        "status": status.value,
        "error": None if code is None else {"code": code, "message": message or ""},
    }
    notice = Notice(
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
    found = db.look(PARCEL, {"tenant": tenant, "id": event_id})
    return Parcel(**found[0]._asdict()) if found else None
