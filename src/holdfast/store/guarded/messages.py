"""The messages of guarded Celery tasks, stored with their runs.

The database knows what was requested; the broker only carries a copy. A run whose message was lost, or whose
holder was, is queued with a time to publish its message (`tasks.look_again_at`, 0: at once). A process that
takes a message from here moves that time on in the same transaction, and publishes after the commit: if it
dies in between, the message is published again later. A message too many is harmless, as the claim decides.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BindParameter, Double, Row, bindparam, case, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core import decide, keys
from holdfast.core.records import Ask, Claim, Fenced, Landed, Outcome, RequestResult
from holdfast.core.states import GUARDED_LANE, LIVE, Disposition, Status, TaskState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, Together, key_in, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import carriers, heads, messages, runs, tasks
from holdfast.store.protocol import claims, generations, requests
from holdfast.store.protocol import tasks as fenced

BATCH = 100
SAME_MESSAGE = "same_message"
# How the subjects of calls begin that have no key.
OF_ARGUMENTS = "call:"
# A message that nobody has taken is published again after this time, and then ever less often.
PUBLISH_AGAIN, MOST_PUBLISH_AGAIN = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class TaskMessage:
    """What Celery is sent for a run. `expires_at` is by the wall clock, as Celery has it."""

    celery_id: str
    task_name: str
    body: str
    options: Mapping[str, Any]
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """When a requested task may start, and when its message is published if no worker has taken it by then.

    Seconds from now. A task that is to start later is not published before: the sweep does that.
    """

    delay: float = 0.0
    publish_after: float = PUBLISH_AGAIN


_new_message = (
    upsert(messages)
    .values(
        run_id=bindparam("b_run"),
        celery_id=bindparam("b_celery"),
        task_name=bindparam("b_name"),
        body=bindparam("b_body"),
        options=bindparam("b_options"),
        expires_at=bindparam("b_expires"),
    )
    .on_conflict_do_nothing()
)
_delay: BindParameter[float] = bindparam("b_delay", type_=Double())
_schedule = (
    update(tasks)
    # Only a task that nobody has claimed: after a lost response this is tried again, perhaps after a claim.
    .where(tasks.c.run_id == bindparam("b_run"), tasks.c.ordinal == 0, tasks.c.epoch == 0)
    .values(
        state=case((_delay > 0, literal(TaskState.WAITING)), else_=literal(TaskState.QUEUED)),
        waiting_for=case((_delay > 0, "eta"), else_=None),
        due_at=now() + _delay,
        look_again_at=case((_delay > 0, 0.0), else_=now() + bindparam("b_after", type_=Double())),
    )
)

STORED = Together(_new_message, _schedule)


def answer(
    tx: Tx,
    ask: Ask,
    message: TaskMessage,
    timing: Timing,
    *,
    run_id: str,
    patience: decide.SilenceLimits,
    chosen: bool = False,
) -> RequestResult:
    """The result of the request, inside the caller's transaction; its message is stored if it is new.

    `chosen`: Celery's id was chosen by somebody else, so that the same message may be requested twice.
    """
    if chosen and not tx.again:
        head, _ = generations.locked_head(tx, ask)
        if (row := tx.one(requests.EXISTING, {"run_id": run_id})) is not None:
            return RequestResult(
                Disposition.DUPLICATE, SAME_MESSAGE, head.id, run_id, row.generation, Status(row.status)
            )
    result = requests.answer(tx, ask, run_id=run_id, patience=patience)
    if result.created:
        schedule = {"b_run": run_id, "b_delay": timing.delay, "b_after": timing.publish_after}
        tx.together(STORED, schedule | _values(message))
    return result


def request(
    db: Database,
    ask: Ask,
    message: TaskMessage,
    timing: Timing,
    *,
    run_id: str,
    patience: decide.SilenceLimits,
    chosen: bool = False,
) -> RequestResult:
    """The result of the request; its message is stored if it is new."""
    return db.write(
        "request",
        lambda tx: answer(tx, ask, message, timing, run_id=run_id, patience=patience, chosen=chosen),
    )


def request_again(
    db: Database, ask: Ask, last_run: str, *, celery_id: str, patience: decide.SilenceLimits
) -> RequestResult | None:
    """The call of an earlier run is made again, under a new id; the sweep of its application publishes it.

    None if the message of that run is not there any more.
    """
    last = of_run(db, last_run)
    if last is None:
        return None
    message = dataclasses.replace(last, celery_id=celery_id, expires_at=None)
    run_id = keys.celery_run(celery_id, message.task_name)
    return request(db, ask, message, Timing(publish_after=0.0), run_id=run_id, patience=patience)


@dataclass(frozen=True, slots=True)
class AdoptingHolder:
    """Who takes a task that is requested by its own delivery."""

    owner: str
    token: str
    ttl: float
    carrier: str


def adopt(
    db: Database,
    ask: Ask,
    message: TaskMessage,
    holder: AdoptingHolder,
    *,
    run_id: str,
    patience: decide.SilenceLimits,
) -> Claim | RequestResult:
    """A message that nobody has requested is requested and its task taken, in one transaction.

    Otherwise what became of the request: the work is done already, or under way elsewhere.
    """

    def body(tx: Tx) -> Claim | RequestResult:
        if tx.again and (mine := claims.mine(tx, holder.token)) is not None:
            return mine
        result = answer(tx, ask, message, Timing(), run_id=run_id, patience=patience, chosen=True)
        if not result.created:
            return result
        return claims.take(tx, run_id, **dataclasses.asdict(holder))

    return db.write("adopt", body)


def _values(message: TaskMessage) -> dict[str, Any]:
    return {
        "b_celery": message.celery_id,
        "b_name": message.task_name,
        "b_body": message.body,
        "b_options": dict(message.options),
        "b_expires": message.expires_at,
    }


REPLACE = (
    update(messages)
    .where(messages.c.run_id == bindparam("b_run"))
    .values(body=bindparam("b_body"), options=bindparam("b_options"), expires_at=bindparam("b_expires"))
)


def replace(db: Database, claim: Claim, message: TaskMessage) -> Outcome:
    """The run goes on with this message: its task retries, perhaps with other arguments."""

    def body(tx: Tx) -> Outcome:
        held = fenced.hold(tx, claim, change=False)
        if isinstance(held, fenced.LockedTask):
            names = {"b_body", "b_options", "b_expires"}
            values = {name: value for name, value in _values(message).items() if name in names}
            tx.execute(REPLACE, {"b_run": claim.run_id, **values})
            return Landed()
        return held

    return db.write("replace_message", body)


_COLUMNS = (
    messages.c.run_id,
    messages.c.celery_id,
    messages.c.task_name,
    messages.c.body,
    messages.c.options,
    messages.c.expires_at,
)
OF_RUN = select(*_COLUMNS).where(messages.c.run_id == bindparam("run_id"))
FORGET = update(runs).where(runs.c.id == bindparam("b_run")).values(past=True)


def of_run(db: Database, run_id: str) -> TaskMessage | None:
    """The message of a run; None if it has none, or its history was pruned."""
    row = db.first(OF_RUN, {"run_id": run_id})
    return None if row is None else _message(row)


def celery_id(first: Callable[..., Row[Any] | None], run_id: str) -> str | None:
    """Celery's id of a run, read by `first`, which answers the row of a statement; None without a message."""
    row = first(OF_RUN, {"run_id": run_id})
    return None if row is None else str(row.celery_id)


def _message(row: Row[Any]) -> TaskMessage:
    return TaskMessage(row.celery_id, row.task_name, row.body, row.options, row.expires_at)


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run stands, for somebody who has its message in hand."""

    status: Status
    result: Mapping[str, Any] | None
    error_code: str | None
    error_message: str | None
    age: float | None


END_OF = select(
    runs.c.status,
    runs.c.result,
    runs.c.error_code,
    runs.c.error_message,
    (now() - runs.c.finished_at).label("age"),
).where(runs.c.id == bindparam("run_id"))


def end_of(db: Database, run_id: str) -> RunEnd | None:
    """How the run stands; `age` is the seconds since it ended. None if there is no such run any more."""
    row = db.first(END_OF, {"run_id": run_id})
    if row is None:
        return None
    return RunEnd(Status(row.status), row.result, row.error_code, row.error_message, row.age)


_to_publish = (
    tasks.c.state == literal(TaskState.QUEUED),
    tasks.c.lane == literal(GUARDED_LANE),
    tasks.c.look_again_at <= now(),
)
_names = bindparam("names", type_=KeyList())
DUE = (
    select(*_COLUMNS, tasks.c.id.label("task_id"), tasks.c.head_id, tasks.c.due_at, now().label("now"))
    .select_from(tasks.join(messages, messages.c.run_id == tasks.c.run_id))
    .where(*_to_publish, key_in(messages.c.task_name, _names))
    .order_by(tasks.c.look_again_at)
    .limit(bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True, of=tasks)
)
PUBLISHED = (
    update(tasks)
    .where(tasks.c.id == bindparam("b_task"))
    .values(look_again_at=now() + bindparam("b_after", type_=Double()))
)
HAS_DUE = exists().where(*_to_publish)
HAS_REPORTS = exists().where(messages.c.report_at.is_not(None), messages.c.report_at <= now())
HAS_WORK = select(HAS_DUE | HAS_REPORTS)


@dataclass(frozen=True, slots=True)
class DueMessage:
    """A message to be published. `expired`: nobody has taken it in time, and its run is to be cancelled."""

    run_id: str
    head_id: int
    message: TaskMessage
    expired: bool = False
    # Seconds since the task fell due.
    age: float = 0.0


def take_due(db: Database, names: Sequence[str]) -> list[DueMessage]:
    """The messages of these tasks that are to be published now, by the caller.

    The time until a message is published once more grows with the time that it has been waiting for a worker.
    """

    def body(tx: Tx) -> list[DueMessage]:
        due = []
        for row in tx.all(DUE, {"names": list(names), "limit": BATCH}):
            after = min(MOST_PUBLISH_AGAIN, max(PUBLISH_AGAIN, row.now - row.due_at))
            tx.execute(PUBLISHED, {"b_task": row.task_id, "b_after": after})
            expired = row.expires_at is not None and row.expires_at <= row.now
            age = row.now - row.due_at
            due.append(DueMessage(row.run_id, row.head_id, _message(row), expired, age))
        return due

    return db.write("take_due", body)


LAST_SUCCESS = (
    select((now() - runs.c.finished_at).label("age"))
    .select_from(heads.join(runs, runs.c.id == heads.c.run_id))
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.kind == bindparam("kind"),
        heads.c.subject == bindparam("subject"),
        runs.c.status == literal(Status.SUCCESS),
    )
)


def since_success(db: Database, ask: Ask) -> float | None:
    """Seconds since the latest run of the subject succeeded; None if it did not."""
    row = db.first(LAST_SUCCESS, {"tenant": ask.tenant, "kind": ask.kind, "subject": ask.subject})
    return None if row is None else row.age


def has_work(db: Database) -> bool:
    """True if a message is to be published, of whatever task."""
    row = db.first(HAS_WORK)
    return row is not None and bool(row[0])


REPORTS = (
    select(*_COLUMNS, runs.c.head_id)
    .select_from(messages.join(runs, runs.c.id == messages.c.run_id))
    .where(
        messages.c.report_at.is_not(None),
        messages.c.report_at <= now(),
        key_in(messages.c.task_name, _names),
    )
    .order_by(messages.c.report_at)
    .limit(bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True, of=messages)
)
REPORT_AGAIN = (
    update(messages).where(messages.c.run_id == bindparam("b_run")).values(report_at=now() + PUBLISH_AGAIN)
)
REPORTED = (
    update(messages)
    .where(messages.c.run_id == bindparam("b_run"), messages.c.report_at.is_not(None))
    .values(report_at=None)
)


def take_reports(db: Database, names: Sequence[str]) -> list[DueMessage]:
    """The messages of ended runs that Celery has not been told about, to be published by the caller.

    Delivered once more, each ends as its run did: its result, its failure or its revocation is recorded. They
    are due again after a while, until a delivery says that Celery was told.
    """

    def body(tx: Tx) -> list[DueMessage]:
        due = []
        for row in tx.all(REPORTS, {"names": list(names), "limit": BATCH}):
            tx.execute(REPORT_AGAIN, {"b_run": row.run_id})
            due.append(DueMessage(row.run_id, row.head_id, _message(row)))
        return due

    return db.write("take_reports", body)


def reported(db: Database, run_id: str) -> bool:
    """Celery is told of the end of the run by the delivery in hand; False if it was told before."""
    return db.write(
        "reported", lambda tx: tx.execute(REPORTED, {"b_run": run_id}).rowcount == 1, relaxed=True
    )


def report(db: Database, run_id: str) -> None:
    """The message of the ended run, which could not be published, is published by the next sweep."""
    db.write("report", lambda tx: tx.execute(REPORT, {"b_run": run_id}), relaxed=True)


REPORT = update(messages).where(messages.c.run_id == bindparam("b_run")).values(report_at=now())
REPORT_LATER = REPORT.values(report_at=now() + bindparam("b_after", type_=Double()))
PUBLISH_NOW = (
    update(tasks)
    .where(
        tasks.c.run_id == bindparam("b_run"),
        tasks.c.ordinal == 0,
        tasks.c.state == literal(TaskState.QUEUED),
    )
    .values(look_again_at=0.0)
)


def publish_soon(db: Database, run_id: str) -> None:
    """The message of the run, which could not be published, is published by the next sweep."""
    db.write("publish_soon", lambda tx: tx.execute(PUBLISH_NOW, {"b_run": run_id}), relaxed=True)


HELD = (
    select(tasks.c.id, tasks.c.epoch, func.coalesce(carriers.c.process, "").label("process"))
    .select_from(tasks.outerjoin(carriers, carriers.c.id == tasks.c.carrier))
    .where(
        tasks.c.run_id == bindparam("run_id"),
        tasks.c.ordinal == 0,
        tasks.c.state == literal(TaskState.RUNNING),
    )
)


HELD_ALIVE = HELD.where(tasks.c.lease_until > now())


def is_held(db: Database, run_id: str) -> bool:
    """True if a worker is executing the run, and its lease is alive."""
    return db.first(HELD_ALIVE, {"run_id": run_id}) is not None


@dataclass(frozen=True, slots=True)
class HeldTask:
    """The running task of a run, and the process that holds it."""

    task_id: int
    epoch: int
    process: str


def held(db: Database, run_id: str) -> HeldTask | None:
    """The task of the run, if it is running."""
    row = db.first(HELD, {"run_id": run_id})
    return None if row is None else HeldTask(row.id, row.epoch, row.process)


def end(
    db: Database, run_id: str, *, code: str, message: str, cancelled: bool = False, held_too: bool = True
) -> Outcome:
    """The live run has failed, or was cancelled, by the word of somebody who holds no claim on it.

    Unless `held_too`, a run that a worker is executing is left alone.
    """

    def body(tx: Tx) -> Outcome:
        row = tx.one(rows.RUN_BY_ID, {"run_id": run_id})
        if row is None:
            return Fenced("unknown")
        head_row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": row.head_id})
        row = tx.one(rows.RUN_BY_ID, {"run_id": run_id})
        if head_row is None or row is None:
            return Fenced("unknown")
        if row.status not in LIVE:
            return Landed() if tx.again else Fenced(f"run_{row.status}")
        if not held_too and tx.one(HELD_ALIVE, {"run_id": run_id}) is not None:
            return Fenced("held")
        head = rows.head(head_row)
        about = {"tenant": head.tenant, "head_id": head.id, "run_id": run_id, "generation": row.generation}
        if cancelled:
            requests.end_run(tx, run_id, Status.CANCELLED, code=code, message=message)
            after = decide.after_cancel(head).value
            tx.execute(requests.SET_STATUS, {"b_head": head.id, "b_status": after})
        else:
            requests.end_failed(tx, head, run_id, code=code, message=message)
        journal.write(tx, journal.entry(Verb.CANCEL if cancelled else Verb.FAIL, code, **about))
        return Landed()

    return db.write("end_guarded", body)
