"""Actions and follow-ups as shown to people. Read-only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Row, Select, bindparam, func, literal, null, select

from holdfast.core.records import Spent
from holdfast.core.states import LIVE, Status
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import actions, deliveries, follow_ups, heads, keeps, runs, tasks
from holdfast.store.follow_ups import deliveries as made
from holdfast.store.money import payments

SHOWN = 200
_SUMMED = ("reused_calls", "saved")
# A delivery that was sent again has another run; its head knows the latest.
_status = func.coalesce(heads.c.status, runs.c.status)
_joined = (
    follow_ups.join(actions, actions.c.id == follow_ups.c.action_id)
    .outerjoin(runs, runs.c.id == follow_ups.c.run_id)
    .outerjoin(deliveries, deliveries.c.id == follow_ups.c.run_id)
    .outerjoin(heads, heads.c.id == deliveries.c.head_id)
)


@dataclass(frozen=True, slots=True)
class Action:
    """What a collection does with each document. `visiting` is true during its first pass over old documents.

    `counts` is the number of its follow-ups by status. The secret is not included. Of an action that keeps
    something up to date, `due_at` is when its next run is requested, and `error` why the last was not.
    """

    id: int
    collection: str
    options: Mapping[str, Any]
    name: str
    created_at: float
    visiting: bool
    due_at: float | None = None
    error: tuple[str, str] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def sort(self) -> str:
        """The kind of action."""
        return str(self.options.get("sort", ""))

    @property
    def fired(self) -> int:
        """How many follow-ups it has created."""
        return sum(self.counts.values())

    def number(self, *statuses: Status) -> int:
        """How many of its follow-ups are in one of these statuses."""
        return sum(self.counts.get(status, 0) for status in statuses)

    @property
    def running(self) -> int:
        """How many have not ended."""
        return self.number(*LIVE)


ACTIONS = (
    select(actions, keeps.c.due_at, keeps.c.error_code, keeps.c.error_message)
    .select_from(actions.outerjoin(keeps, keeps.c.action_id == actions.c.id))
    .where(
        actions.c.tenant == bindparam("tenant"),
        actions.c.collection == bindparam("collection"),
        actions.c.active,
    )
    .order_by(actions.c.id)
)
COUNTS = (
    select(follow_ups.c.action_id, _status.label("status"), func.count().label("number"))
    .select_from(_joined)
    .where(
        actions.c.tenant == bindparam("tenant"),
        actions.c.collection == bindparam("collection"),
        actions.c.active,
    )
    .group_by(follow_ups.c.action_id, _status)
)


HOOKS = (
    select(
        actions,
        null().label("due_at"),
        null().label("error_code"),
        null().label("error_message"),
    )
    .where(actions.c.tenant == bindparam("tenant"), actions.c.kind == made.KIND, actions.c.active)
    .order_by(actions.c.collection, actions.c.id)
    .limit(SHOWN)
)


def actions_of(db: Database, tenant: str, collection: str) -> list[Action]:
    """The collection's actions, oldest first, with the states of their follow-ups."""
    where = {"tenant": tenant, "collection": collection}
    rows, counted = db.read(lambda tx: (tx.all(ACTIONS, where), tx.all(COUNTS, where)))
    counts: dict[int, dict[str, int]] = {}
    for row in counted:
        counts.setdefault(row.action_id, {})[row.status or Status.SUPERSEDED] = row.number
    return [_action(row, counts.get(row.id, {})) for row in rows]


def hooks(db: Database, tenant: str) -> list[Action]:
    """The webhooks of all the tenant's collections, a few hundred at most, without counts."""
    return [_action(row, {}) for row in db.look(HOOKS, {"tenant": tenant})]


def _action(row: Row[Any], counts: Mapping[str, int]) -> Action:
    visiting = row.visited is not None
    error = None if row.error_code is None else (row.error_code, row.error_message or "")
    return Action(
        row.id, row.collection, row.options, row.name, row.created_at, visiting, row.due_at, error, counts
    )


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The follow-up of one generation of a document by an action."""

    action_id: int
    sort: str
    name: str
    generation: int
    run_id: str
    status: str
    result: Mapping[str, Any] | None
    error_code: str | None
    error_message: str | None
    queued_at: float | None
    finished_at: float | None
    spent: Spent
    subject: str = ""


_document = heads.alias("document")
_listed = (
    select(
        follow_ups.c.action_id,
        actions.c.options,
        actions.c.name,
        follow_ups.c.generation,
        follow_ups.c.run_id,
        _status.label("status"),
        *(runs.c[name] for name in ("result", "error_code", "error_message", "queued_at", "finished_at")),
        *(
            select(func.coalesce(func.sum(tasks.c[name]), 0))
            .where(tasks.c.run_id == follow_ups.c.run_id)
            .correlate(follow_ups)
            .scalar_subquery()
            .label(name)
            for name in _SUMMED
        ),
    )
    .where(actions.c.tenant == bindparam("tenant"))
    .limit(bindparam("limit"))
)
OF_DOCUMENT = (
    _listed.add_columns(literal("").label("subject"))
    .select_from(_joined)
    .where(follow_ups.c.head_id == bindparam("head_id"))
    .order_by(follow_ups.c.generation.desc(), follow_ups.c.action_id)
)
OF_ACTION = (
    _listed.add_columns(_document.c.subject)
    .select_from(_joined.join(_document, _document.c.id == follow_ups.c.head_id))
    .where(follow_ups.c.action_id == bindparam("action_id"))
    .order_by(func.coalesce(runs.c.queued_at, 0.0).desc(), follow_ups.c.head_id.desc())
)


def of_document(db: Database, tenant: str, head_id: int, limit: int = SHOWN) -> Sequence[FollowUp]:
    """The follow-ups of a document, those of the latest generation first."""
    return _follow_ups(db, OF_DOCUMENT, {"tenant": tenant, "head_id": head_id, "limit": limit})


def of_action(db: Database, tenant: str, action_id: int, limit: int = SHOWN) -> Sequence[FollowUp]:
    """The latest follow-ups of an action, newest first; `subject` names the document."""
    return _follow_ups(db, OF_ACTION, {"tenant": tenant, "action_id": action_id, "limit": limit})


def _follow_ups(db: Database, query: Select[Any], values: Mapping[str, Any]) -> list[FollowUp]:
    def body(tx: Tx) -> list[FollowUp]:
        listed = tx.all(query, values)
        bill = payments.by_run(tx, {row.run_id for row in listed})
        return [_follow_up(row, bill.get(row.run_id, Spent())) for row in listed]

    return db.read(body)


def _follow_up(row: Row[Any], charged: Spent) -> FollowUp:
    return FollowUp(
        action_id=row.action_id,
        sort=str(row.options.get("sort", "")),
        name=row.name,
        generation=row.generation,
        run_id=row.run_id,
        status=row.status or Status.SUPERSEDED,
        result=row.result,
        error_code=row.error_code,
        error_message=row.error_message,
        queued_at=row.queued_at,
        finished_at=row.finished_at,
        spent=replace(charged, **{name: int(getattr(row, name)) for name in _SUMMED}),
        subject=row.subject,
    )
