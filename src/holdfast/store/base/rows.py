"""Rows to records, and the statements that lock them. Lock order: head, run, task, order, calls, budgets."""

from operator import attrgetter
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, Select, bindparam, exists, literal_column, or_, select

from holdfast.core import states
from holdfast.core.records import Head, RunRecord, Task
from holdfast.core.states import Disposition, Lane, Status, TaskState, Verb
from holdfast.store.base.dialect import now, queue_to_change, queue_to_share
from holdfast.store.base.schema import heads, orders, runs, tasks


def literal(state: str) -> Any:
    """A state as SQL text. As a bound parameter it would keep the planner from using partial indexes."""
    return literal_column(f"'{state}'")


def may(column: Column[Any], what: str, verb: Verb) -> ColumnElement[bool]:
    """SQL that is true for a row on which `verb` may act, according to the table of transitions."""
    known = states.sources(what, verb)
    return column == literal(known[0]) if len(known) == 1 else column.in_([literal(each) for each in known])


# Progress or a settled call since the claim: the death of such a holder is bad luck, not poison.
ADVANCED = or_(
    tasks.c.advanced,
    exists().where(
        orders.c.run_id == tasks.c.run_id,
        orders.c.task_id == tasks.c.id,
        orders.c.settled_at > tasks.c.claimed_at,
    ),
)

HEAD_COLUMNS = [heads.c[name] for name in Head.__dataclass_fields__]
RUN_COLUMNS = [runs.c[name] for name in RunRecord.__dataclass_fields__]
TASK_COLUMNS = [tasks.c[name] for name in Task.__dataclass_fields__]


def _by_id(*, share: bool) -> Select[Any]:
    queued = queue_to_share(heads.c.id) if share else queue_to_change(heads.c.id)
    query = select(*HEAD_COLUMNS, now().label("now"), queued.label("turn"))
    query = query.where(heads.c.id == bindparam("head_id"))
    return query.with_for_update(read=True) if share else query.with_for_update(key_share=True)


HEAD_FOR_SHARE = _by_id(share=True)
HEAD_FOR_CHANGE = _by_id(share=False)

HEAD_BY_SUBJECT_FOR_CHANGE = (
    select(*HEAD_COLUMNS, now().label("now"), queue_to_change(heads.c.id).label("turn"))
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.kind == bindparam("kind"),
        heads.c.subject == bindparam("subject"),
    )
    .with_for_update(key_share=True)
)

RUN_BY_ID = select(*RUN_COLUMNS).where(runs.c.id == bindparam("run_id"))


def head(row: Row[Any]) -> Head:
    """The record of a locked head row."""
    return Head(
        row.id,
        row.tenant,
        row.kind,
        row.subject,
        row.collection,
        row.generation,
        Status(row.status),
        row.run_id,
        row.fingerprint,
        row.published_generation,
        row.visible,
        row.deleted,
    )


_RUN = tuple(RunRecord.__dataclass_fields__)
_of_run = attrgetter(*_RUN)
# A dict lookup: calling the enum takes ten times as long, and pages have hundreds of rows.
_STATUSES = {str(status): status for status in Status}
_DISPOSITIONS = {str(disposition): disposition for disposition in Disposition}
_STATUS, _DISPOSITION = _RUN.index("status"), _RUN.index("disposition")


def run(row: Row[Any]) -> RunRecord:
    """The record of a run row."""
    values = list(_of_run(row))
    values[_STATUS] = _STATUSES[values[_STATUS]]
    values[_DISPOSITION] = _DISPOSITIONS[values[_DISPOSITION]]
    return RunRecord(*values)


def task(row: Row[Any]) -> Task:
    """The record of a task row."""
    return Task(
        row.id,
        row.run_id,
        row.head_id,
        row.generation,
        row.ordinal,
        TaskState(row.state),
        row.epoch,
        row.token,
        row.owner,
        row.lease_until,
        row.attempts,
        row.due_at,
        row.waiting_for,
        row.phase,
    )


def remembered(head: Head) -> RunRecord:
    """The head's latest run as recorded in the head, for a run whose history was pruned."""
    return RunRecord(
        id=head.run_id or "",
        head_id=head.id,
        tenant=head.tenant,
        kind=head.kind,
        subject=head.subject,
        generation=head.generation,
        status=Status.CANCELLED if head.status is Status.IDLE else head.status,
        disposition=Disposition.ACCEPTED,
        lane=Lane.BULK,
        priority=0,
        pipeline="",
        slices=None,
        queued_at=0.0,
        started_at=None,
        finished_at=None,
        error_code=None,
        error_message=None,
    )
