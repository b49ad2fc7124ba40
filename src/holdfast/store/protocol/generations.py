"""How a generation is stored: its head, its run, its first task, its tenant's slot and the journal entry."""

from sqlalchemy import bindparam, case, func, insert, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.decide import Verdict
from holdfast.core.records import Ask, Head
from holdfast.core.states import Status, TaskState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import Together, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import ceilings, heads, runs, tasks, turns

NEW_HEAD = (
    upsert(heads)
    .values(
        tenant=bindparam("b_tenant"),
        kind=bindparam("b_kind"),
        subject=bindparam("b_subject"),
        collection=bindparam("b_collection"),
        generation=0,
        status=Status.IDLE.value,
        fingerprint="",
        updated_at=now(),
    )
    .on_conflict_do_nothing()
)
NEW_CEILING = insert(ceilings)
INSERT_RUN = insert(runs).values(queued_at=now())
INSERT_PLAN = insert(tasks).values(
    run_id=bindparam("b_run"),
    head_id=bindparam("b_head"),
    tenant=bindparam("b_tenant"),
    lane=bindparam("b_lane"),
    priority=bindparam("b_priority"),
    age=func.coalesce(bindparam("b_age"), now()),
    due_at=now(),
    pipeline=bindparam("b_pipeline"),
    generation=bindparam("b_generation"),
    ordinal=0,
    payload={},
    state=literal(TaskState.QUEUED),
)
MOVE_HEAD = (
    update(heads)
    .where(heads.c.id == bindparam("b_head"))
    .values(
        generation=bindparam("b_generation"),
        status=literal(Status.QUEUED),
        run_id=bindparam("b_run"),
        fingerprint=bindparam("b_fingerprint"),
        # A visible document changes its collection only by `move`, which notifies readers of both
        # collections.
        collection=func.coalesce(
            case((heads.c.visible, heads.c.collection)), bindparam("b_collection"), heads.c.collection
        ),
        deleted=False,
        updated_at=now(),
    )
)
NEW_TURN = (
    upsert(turns).values(lane=bindparam("b_lane"), tenant=bindparam("b_tenant")).on_conflict_do_nothing()
)
OPENED = Together(INSERT_PLAN, MOVE_HEAD, NEW_TURN, journal.WRITE)


def locked_head(tx: Tx, ask: Ask) -> tuple[Head, float]:
    """The head of `ask`, created if missing and locked for change; and the current time."""
    where = {"tenant": ask.tenant, "kind": ask.kind, "subject": ask.subject}
    row = tx.one(rows.HEAD_BY_SUBJECT_FOR_CHANGE, where)
    if row is None:
        tx.execute(
            NEW_HEAD, {f"b_{name}": value for name, value in where.items()} | {"b_collection": ask.collection}
        )
        row = tx.one(rows.HEAD_BY_SUBJECT_FOR_CHANGE, where)
    if row is None:  # heads are never deleted
        raise AssertionError("a head vanished")
    return rows.head(row), row.now


def insert_run(
    tx: Tx,
    ask: Ask,
    head_id: int,
    generation: int,
    verdict: Verdict,
    run_id: str,
    age: float | None = None,
) -> None:
    """The locked head's `generation` is queued with its plan task. No older run of the head may be live."""
    tx.execute(
        INSERT_RUN,
        {
            "id": run_id,
            "head_id": head_id,
            "tenant": ask.tenant,
            "kind": ask.kind,
            "subject": ask.subject,
            "generation": generation,
            "status": Status.QUEUED.value,
            "disposition": verdict.disposition.value,
            "reason": verdict.reason,
            "actor": ask.actor,
            "lane": ask.lane,
            "priority": ask.priority,
            "pipeline": ask.pipeline,
            "content": ask.content,
            "options": dict(ask.options),
            "callback": dict(ask.callback) if ask.callback is not None else None,
            "trace": ask.trace,
        },
    )
    if ask.max_cost is not None:
        tx.execute(NEW_CEILING, {"run_id": run_id, "most": ask.max_cost, "requested": True})
    values = {
        "b_run": run_id,
        "b_head": head_id,
        "b_tenant": ask.tenant,
        "b_lane": ask.lane,
        "b_priority": ask.priority,
        "b_age": age,
        "b_pipeline": ask.pipeline,
        "b_generation": generation,
        "b_fingerprint": ask.fingerprint,
        "b_collection": ask.collection,
    }
    noted = journal.entry(
        Verb.REQUEST,
        f"{verdict.disposition}:{verdict.reason}",
        tenant=ask.tenant,
        head_id=head_id,
        run_id=run_id,
        generation=generation,
        actor=ask.actor,
    )
    tx.together(OPENED, values | noted)
