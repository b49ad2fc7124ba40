"""The attempts of a delivery, fenced like any write of a worker; and how people list and repeat them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, exists, func, literal_column, select, union_all, update

from holdfast.core import decide
from holdfast.core.records import Ask, Claim, Fenced, Landed, Outcome
from holdfast.core.states import LIVE, Disposition, Lane, Status, TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import A_DELIVERY, deliveries, heads, runs, tasks
from holdfast.store.follow_ups import deliveries as made
from holdfast.store.protocol import generations, requests
from holdfast.store.protocol import tasks as fenced

MOST_ERROR = 500
STATES: dict[str, tuple[Status, ...]] = {
    "pending": tuple(sorted(LIVE)),
    "delivered": (Status.SUCCESS,),
    "failed": (Status.FAILED,),
    "cancelled": (Status.IDLE,),
}
"""The state of a delivery, by the status of its head."""

LATEST_RUN: dict[str, tuple[Status, ...]] = {
    "pending": tuple(sorted(LIVE)),
    # One that was delivered, sent again and then cancelled counts as delivered.
    "delivered": (Status.SUCCESS, Status.CANCELLED),
    "failed": (Status.FAILED,),
    "cancelled": (Status.CANCELLED,),
}
"""The status of the latest run of such a delivery: the key of its index."""

TRYING = update(deliveries).where(deliveries.c.id == bindparam("b_id")).values(tries=bindparam("b_tries"))
MISSED = (
    update(deliveries)
    .where(deliveries.c.id == bindparam("b_id"))
    .values(last_status=bindparam("b_status"), last_error=bindparam("b_error"))
)
DELIVERED = (
    update(deliveries)
    .where(deliveries.c.id == bindparam("b_id"))
    .values(last_status=bindparam("b_status"), last_error=None, delivered_at=now())
)


def trying(db: Database, claim: Claim, event_id: str, tries: int) -> Outcome:
    """The attempt is counted before it is made, so that one whose worker dies counts as well.

    It counts as progress: a delivery is given up because of its age, never because workers died.
    """

    def body(tx: Tx) -> Outcome:
        held = fenced.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held
        tx.execute(TRYING, {"b_id": event_id, "b_tries": tries})
        progress = {"b_done": tries, "b_total": tries, "b_unit": "tries", "b_stages": None}
        tx.execute(fenced.ADVANCE, {"b_task": claim.task_id, "b_advanced": True, **progress})
        return Landed()

    return db.write("trying", body)


def missed(db: Database, claim: Claim, event_id: str, *, status: int | None, error: str) -> Outcome:
    """The latest attempt failed, for this reason."""

    def body(tx: Tx) -> Outcome:
        held = fenced.hold(tx, claim, change=False)
        if isinstance(held, Fenced | Landed):
            return held
        tx.execute(MISSED, {"b_id": event_id, "b_status": status, "b_error": error[:MOST_ERROR]})
        return Landed()

    return db.write("missed", body)


def delivered(tx: Tx, event_id: str, status: int) -> None:
    """The receiver has accepted the event; for the transaction that finishes the delivery."""
    tx.execute(DELIVERED, {"b_id": event_id, "b_status": status})


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one URL, and its state. The secret is not included."""

    head_id: int
    id: str
    action_id: int | None
    cause: str
    subject: str
    generation: int
    event: str
    url: str
    tries: int
    last_status: int | None
    last_error: str | None
    created_at: float
    delivered_at: float | None
    state: str
    error_code: str | None
    next_try_at: float | None


_next_try = (
    select(func.min(tasks.c.due_at))
    .where(tasks.c.run_id == heads.c.run_id, tasks.c.state == literal(TaskState.WAITING))
    .correlate(heads)
    .scalar_subquery()
)
_latest = deliveries.alias("latest")
_own = [name for name in Delivery.__dataclass_fields__ if name in deliveries.c]


def _listed() -> Select[Any]:
    return (
        select(
            *(deliveries.c[name] for name in _own),
            heads.c.status,
            runs.c.error_code,
            _next_try.label("next_try_at"),
        )
        .select_from(deliveries.join(heads, heads.c.id == deliveries.c.head_id))
        .join(runs, runs.c.id == heads.c.run_id)
        .where(deliveries.c.tenant == bindparam("tenant"))
    )


ONE = _listed().where(deliveries.c.id == bindparam("id"))
PAGE = (
    _listed()
    .where(deliveries.c.head_id < bindparam("before"))
    .order_by(deliveries.c.head_id.desc())
    .limit(bindparam("limit"))
)
# Runs outlive old deliveries; those below the oldest stored delivery are not read.
_oldest = select(func.min(_latest.c.head_id)).where(_latest.c.tenant == bindparam("tenant")).scalar_subquery()


def _in(state: str, run_status: Status) -> Select[Any]:
    """The newest heads of deliveries in a state whose latest run has this status.

    Only runs are in its FROM, so that both databases use the index of just those.
    """
    matching = (
        select(runs.c.head_id)
        .where(
            literal_column(f"holdfast_runs.{A_DELIVERY}"),
            runs.c.tenant == bindparam("tenant"),
            runs.c.status == literal(run_status),
            runs.c.head_id < bindparam("before"),
            runs.c.head_id >= _oldest,
            exists().where(
                heads.c.id == runs.c.head_id,
                heads.c.run_id == runs.c.id,
                heads.c.status.in_([literal(status) for status in STATES[state]]),
            ),
            exists().where(_latest.c.tenant == bindparam("tenant"), _latest.c.head_id == runs.c.head_id),
        )
        .order_by(runs.c.head_id.desc())
        .limit(bindparam("limit"))
    )
    return select(matching.subquery())


def _page(state: str) -> Select[Any]:
    matching = union_all(*(_in(state, status) for status in LATEST_RUN[state])).subquery()
    return PAGE.where(deliveries.c.head_id.in_(select(matching.c.head_id)))


PAGES = {state: _page(state) for state in STATES}
FROM_THE_END = 2**62


def _delivery(row: Any) -> Delivery:
    state = next(name for name, statuses in STATES.items() if row.status in statuses)
    values = {name: getattr(row, name) for name in _own}
    return Delivery(**values, state=state, error_code=row.error_code, next_try_at=row.next_try_at)


def one(db: Database, tenant: str, event_id: str) -> Delivery | None:
    """The delivery of the event, if it belongs to the tenant."""
    rows = db.look(ONE, {"tenant": tenant, "id": event_id})
    return _delivery(rows[0]) if rows else None


def page(
    db: Database, tenant: str, *, state: str | None, before: int = FROM_THE_END, limit: int
) -> Sequence[Delivery]:
    """The tenant's deliveries, newest first."""
    values = {"tenant": tenant, "before": before, "limit": limit}
    return [_delivery(row) for row in db.look(PAGES[state] if state is not None else PAGE, values)]


AGAIN = update(deliveries).where(deliveries.c.id == bindparam("b_id")).values(since=now(), tries=0)
HURRY = (
    update(tasks)
    .where(tasks.c.run_id == bindparam("b_run"), tasks.c.state == literal(TaskState.WAITING))
    .values(state=literal(TaskState.QUEUED), due_at=now(), waiting_for=None)
)
OWN = select(deliveries.c.id).where(
    deliveries.c.tenant == bindparam("tenant"), deliveries.c.id == bindparam("id")
)


def resend(db: Database, tenant: str, event_id: str, *, run_id: str, actor: str = "") -> Outcome:
    """The event is due at once, with the same id and body.

    A delivery that has ended gets a new generation and is tried for as long again; one that waits for its
    next attempt stops waiting. Refused if it is unknown, queued or being tried.
    """
    ask = Ask(
        kind=made.KIND,
        subject=made.subject(event_id),
        tenant=tenant,
        lane=Lane.FOLLOW_UP,
        pipeline=made.PIPELINE,
        actor=actor,
    )

    def body(tx: Tx) -> Outcome:
        if tx.one(OWN, {"tenant": tenant, "id": event_id}) is None:
            return Fenced("unknown")
        head, _at = generations.locked_head(tx, ask)
        if tx.again and tx.one(requests.EXISTING, {"run_id": run_id}) is not None:
            return Landed()
        run, _life, _age = requests.latest(tx, head)
        if run is not None and run.status in LIVE:
            hurried = tx.execute(HURRY, {"b_run": run.id}).rowcount > 0
            return Landed() if hurried or tx.again else Fenced("in_progress")
        verdict = decide.Verdict(Disposition.ACCEPTED, "resend")
        requests.open_generation(tx, ask, head, run, verdict, run_id)
        tx.execute(AGAIN, {"b_id": event_id})
        return Landed()

    return db.write("resend", body)
