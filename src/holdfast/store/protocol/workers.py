"""What workers report about themselves, for people to read. The protocol makes no decision by it.

A worker that has not reported for `LOST_AFTER` seconds is shown as lost. Whether its tasks are lost is
decided by their leases alone.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import bindparam, delete, exists, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.states import TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import tasks, workers

# Workers report every three seconds: three reports are missing.
LOST_AFTER = 10.0
FORGOTTEN_AFTER = 86_400.0


class WorkerState(StrEnum):
    """What a worker says it is doing; `lost` is set by the reader."""

    STARTING = "starting"
    WORKING = "working"
    DRAINING = "draining"
    STOPPED = "stopped"
    SICK = "sick"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker's last report. `silent`: seconds since then; `age`: seconds since it started."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    broker: str
    health: str
    lanes: tuple[str, ...]
    pipelines: tuple[str, ...]
    processes: int
    busy: int
    state: WorkerState
    counts: Mapping[str, int] = field(default_factory=dict)
    silent: float = 0.0
    age: float = 0.0


_REPORTED = [name for name in Worker.__dataclass_fields__ if name not in {"silent", "age"}]
_values: dict[str, Any] = {name: bindparam(f"b_{name}") for name in _REPORTED}
_new = upsert(workers).values(**_values, started_at=now(), seen_at=now())
REPORT = _new.on_conflict_do_update(
    index_elements=[workers.c.id],
    set_={name: _new.excluded[name] for name in (*_REPORTED, "seen_at") if name != "id"},
)
FORGET = delete(workers).where(workers.c.seen_at < now() - bindparam("b_older"))
ALL = select(
    *(workers.c[name] for name in _REPORTED),
    (now() - workers.c.seen_at).label("silent"),
    (now() - workers.c.started_at).label("age"),
).order_by(workers.c.name, workers.c.started_at)
RIPE = select(
    exists().where(
        tasks.c.state == literal(TaskState.QUEUED),
        key_in(tasks.c.lane, bindparam("lanes", type_=KeyList())),
        key_in(tasks.c.pipeline, bindparam("pipelines", type_=KeyList())),
        tasks.c.due_at < now() - bindparam("patience"),
    )
)


def report(db: Database, worker: Worker) -> None:
    """The report is stored; workers that were silent for a day are deleted."""

    def body(tx: Tx) -> None:
        values = {f"b_{name}": getattr(worker, name) for name in _REPORTED}
        values |= {"b_lanes": list(worker.lanes), "b_pipelines": list(worker.pipelines)}
        tx.execute(REPORT, {**values, "b_counts": dict(worker.counts), "b_state": worker.state.value})
        if worker.state is not WorkerState.WORKING:
            tx.execute(FORGET, {"b_older": FORGOTTEN_AFTER})

    db.write("report", body)


def known(db: Database) -> tuple[Worker, ...]:
    """Every worker that reported within the last day, by name."""

    def seen(tx: Tx) -> tuple[Worker, ...]:
        listed = []
        for row in tx.all(ALL):
            values = row._asdict()
            state = WorkerState(row.state)
            if state is not WorkerState.STOPPED and row.silent > LOST_AFTER:
                state = WorkerState.LOST
            values |= {"lanes": tuple(row.lanes), "pipelines": tuple(row.pipelines), "state": state}
            listed.append(Worker(**values))
        return tuple(listed)

    return db.read(seen)


def work_waits(db: Database, *, lanes: Collection[str], pipelines: Collection[str], patience: float) -> bool:
    """True if a task that such a worker could do has been due for more than `patience` seconds."""
    values = {"lanes": list(lanes), "pipelines": list(pipelines), "patience": patience}
    return bool(db.read(lambda tx: tx.execute(RIPE, values).scalar()))
