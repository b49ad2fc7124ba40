"""A task has lost its holder: it is due again, or its run is abandoned.

There are three ways to get here. An expired lease does not say why (`duties.expire`). The death of a whole
worker is noticed by a sweeper on the same machine (`expire_dead`). The death of a single process is reported
at once by its parent (`lose`). In every case the epoch rises: even after a false report, nothing that the
lost holder still does is written.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import BindParameter, Double, Row, bindparam, case, select, update

from holdfast.core import decide
from holdfast.core.records import Claim
from holdfast.core.states import LIVE, Loss, TaskState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import tasks
from holdfast.store.protocol import carriers, requests
from holdfast.store.protocol import tasks as fenced

LOST_COLUMNS = [
    *rows.TASK_COLUMNS,
    tasks.c.tenant,
    tasks.c.lane,
    tasks.c.losses,
    tasks.c.only_waits,
    rows.ADVANCED.label("has_advanced"),
]
_delay: BindParameter[float] = bindparam("b_delay", type_=Double())
_delayed = _delay > 0
EXPIRE = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(
        state=case((_delayed, literal(TaskState.WAITING)), else_=literal(TaskState.QUEUED)),
        waiting_for=case((_delayed, "recovery"), else_=None),
        due_at=now() + _delay,
        epoch=tasks.c.epoch + 1,
        owner=None,
        token=None,
        lease_until=0.0,
        attempts=bindparam("b_attempts"),
        losses=bindparam("b_losses"),
    )
)


def take_back(tx: Tx, row: Row[Any], loss: Loss, caps: decide.Caps) -> decide.Expiry:
    """The locked task has no holder; it is queued, or waits first.

    If the result says that the run is to be abandoned, nothing has changed yet: that needs the head's lock.
    """
    lost = decide.Lost(loss, row.attempts, row.losses, bool(row.has_advanced), bool(row.only_waits))
    expiry = decide.expire(lost, caps)
    if not expiry.abandoned:
        counts = {"b_attempts": expiry.attempts, "b_losses": expiry.losses, "b_delay": expiry.delay}
        tx.execute(EXPIRE, {"b_task": row.id, **counts})
        journal.write(tx, of_task(Verb.EXPIRE, loss, row))
    return expiry


def of_task(verb: Verb, reason: str, row: Row[Any]) -> dict[str, Any]:
    """A journal entry about a task."""
    return journal.entry(
        verb,
        reason,
        tenant=row.tenant,
        head_id=row.head_id,
        run_id=row.run_id,
        task_id=row.id,
        generation=row.generation,
        epoch=row.epoch,
        actor=row.owner,
    )


LOST = (
    select(*LOST_COLUMNS).where(tasks.c.id == bindparam("task_id")).with_for_update(key_share=True, of=tasks)
)
_WHY = {
    Loss.PROCESS_DIED: "the process that ran it died {} times without any progress",
    Loss.OVERRAN: "it exceeded its hard time limit {} times without any progress",
}
_LOST = "its worker was lost {} times without any progress"


def lose(
    db: Database, task_id: int, epoch: int, *, loss: Loss, caps: decide.Caps, process: str = ""
) -> dict[str, int]:
    """The task is due again if it is still held under this epoch, or its run is abandoned. Returns its lane.

    `process`, if given, has died: its orders are now in doubt.
    """
    lane: dict[str, int] = {}  # over all tries, as in `duties.expire`

    def body(tx: Tx) -> Row[Any] | None:
        row = tx.one(LOST, {"task_id": task_id})
        if process:
            carriers.end(tx, process)
        if row is None or row.state != TaskState.RUNNING or row.epoch != epoch:
            return None
        expiry = take_back(tx, row, loss, caps)
        if expiry.abandoned:
            return row
        if not expiry.delay:
            lane[row.lane] = 1
        return None

    abandoned = db.write("lose", body)
    if abandoned is not None:
        abandon(db, abandoned, loss, caps)
    return lane


def overran(db: Database, claim: Claim, caps: decide.Caps) -> dict[str, int]:
    """A task that exceeded its hard time limit is due again; this counts as an attempt."""
    return lose(db, claim.task_id, claim.epoch, loss=Loss.OVERRAN, caps=caps)


def expire_dead(db: Database, died: Callable[[str], bool], caps: decide.Caps) -> dict[str, int]:
    """Tasks whose process and its parent have both provably died are due again. Returns the lanes.

    While the parent lives, the task is left to it: only the parent knows that the process died alone.
    """
    lanes: dict[str, int] = {}
    for row in db.look(carriers.HOLDING):
        if died(row.process) and (not row.parent or died(row.parent)):
            lost = {"loss": Loss.WORKER_DIED, "caps": caps, "process": row.process}
            for lane, count in lose(db, row.id, row.epoch, **lost).items():
                lanes[lane] = lanes.get(lane, 0) + count
    return lanes


def abandon(db: Database, seen: Row[Any], loss: Loss, caps: decide.Caps) -> bool:
    """The run fails as `abandoned`: its task lost its holder too often without progress."""
    noted = of_task(Verb.FAIL, "abandoned", seen)
    times = caps.attempts if loss in _WHY else caps.losses

    def body(tx: Tx) -> bool:
        head_row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": seen.head_id})
        row = tx.one(fenced.TASK_FOR_CHANGE, {"task_id": seen.id})
        if tx.again and journal.has(tx, noted):
            return True
        if head_row is None or row is None or row.epoch != seen.epoch or row.state != TaskState.RUNNING:
            return False
        renewed = loss is Loss.LEASE_EXPIRED and row.lease_until >= head_row.now
        if renewed or row.run_status not in LIVE:
            return False
        tx.execute(fenced.FAILED, {"b_task": row.id})
        why = _WHY.get(loss, _LOST).format(times)
        message = f"{why}; look at the worker's log for this task"
        requests.end_failed(tx, rows.head(head_row), row.run_id, code="abandoned", message=message)
        journal.write(tx, noted)
        return True

    return db.write("abandon", body)
