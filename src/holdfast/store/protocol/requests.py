"""Request, cancel and delete: everything that creates or ends a generation.

Each one locks the head first, so generations of a subject are created one at a time (G1). Ending a run closes
its open tasks in the same transaction and raises their epochs; that is why a claim needs to look at the task
row only.
"""

import dataclasses
from typing import Any

from sqlalchemy import bindparam, case, exists, func, or_, select, union_all, update

from holdfast.core import decide
from holdfast.core.records import Ask, Fenced, Head, Landed, Outcome, RequestResult, RunRecord
from holdfast.core.states import LIVE, Disposition, Lane, Status, TaskState, Verb
from holdfast.store.base import journal, rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import Together, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import budgets, ceilings, heads, runs, tasks, turns
from holdfast.store.protocol import generations, publish_seq, refusals

BORN: dict[str, Any] = {"state": TaskState.QUEUED.value}

_live_states = [literal(status) for status in sorted(LIVE)]

_of_run = tasks.c.run_id == runs.c.id
LATEST = select(
    *rows.RUN_COLUMNS,
    select(func.coalesce(func.max(turns.c.last_served), 0.0))
    .where(turns.c.lane == runs.c.lane)
    .scalar_subquery()
    .label("lane_claimed_at"),
    exists()
    .where(_of_run, tasks.c.state == literal(TaskState.RUNNING), tasks.c.lease_until > now())
    .label("live_lease"),
    exists().where(_of_run, tasks.c.state == literal(TaskState.WAITING)).label("waits"),
    exists().where(_of_run, tasks.c.state == literal(TaskState.QUEUED)).label("queues"),
    select(func.coalesce(func.max(tasks.c.signed_at), 0.0))
    .where(_of_run)
    .scalar_subquery()
    .label("last_sign_at"),
    select(func.coalesce(func.min(tasks.c.age), 0.0)).where(_of_run).scalar_subquery().label("age"),
).where(runs.c.id == bindparam("run_id"))
HARD_LIMITED = select(budgets.c.scope).where(
    budgets.c.tenant == bindparam("b_tenant"),
    or_(budgets.c.scope == "tenant", budgets.c.scope == bindparam("b_scope")),
    budgets.c.hard_limit.is_not(None),
)
EXHAUSTED = select(budgets.c.scope).where(
    budgets.c.tenant == bindparam("b_tenant"),
    or_(budgets.c.scope == "tenant", budgets.c.scope == bindparam("b_scope")),
    budgets.c.hard_limit.is_not(None),
    # Spending of a past day or month no longer counts.
    case((budgets.c.window_end <= now(), 0), else_=budgets.c.spent) + budgets.c.reserved
    >= budgets.c.hard_limit,
)

_end_run = (
    update(runs)
    .where(runs.c.id == bindparam("b_old_run"), runs.c.status.in_(_live_states))
    .values(
        status=bindparam("b_old_status"),
        finished_at=now(),
        error_code=bindparam("b_code"),
        error_message=bindparam("b_message"),
    )
)
_close_tasks = (
    update(tasks)
    .where(tasks.c.run_id == bindparam("b_old_run"), rows.may(tasks.c.state, "task", Verb.CLOSE))
    .values(
        state=literal(TaskState.CLOSED),
        epoch=tasks.c.epoch + 1,
        owner=None,
        token=None,
        lease_until=0.0,
        waiting_for=None,
    )
)
END = Together(_end_run, _close_tasks)

EXISTING = select(*rows.RUN_COLUMNS, runs.c.reason).where(runs.c.id == bindparam("run_id"))


def request(db: Database, ask: Ask, *, run_id: str, patience: decide.SilenceLimits) -> RequestResult:
    """The result of `ask`. A new generation exists if and only if the result says `created`."""
    return db.write("request", lambda tx: answer(tx, ask, run_id=run_id, patience=patience))


def answer(tx: Tx, ask: Ask, *, run_id: str, patience: decide.SilenceLimits) -> RequestResult:
    """Like `request`, inside the caller's transaction. Lock several subjects in sorted order."""
    head, at = generations.locked_head(tx, ask)
    # After the lock: a first try whose response was lost may be committing only now.
    if tx.again and (created := tx.one(EXISTING, {"run_id": run_id})) is not None:
        return RequestResult(
            Disposition(created.disposition),
            created.reason,
            head.id,
            run_id,
            created.generation,
            Status(created.status),
            follow_ups=made_due(tx, head.id, created.generation - 1, Status.SUPERSEDED),
        )
    return _decide(tx, ask, head, at, run_id, patience)


def _decide(
    tx: Tx, ask: Ask, head: Head, at: float, run_id: str, patience: decide.SilenceLimits
) -> RequestResult:
    run, life, age = latest(tx, head)
    verdict = decide.request(ask, head, run, life, patience, at)
    result = RequestResult(
        verdict.disposition, verdict.reason, head.id, run_id, head.generation + 1, Status.QUEUED
    )
    if result.created and ask.pays and (broke := tx.one(EXHAUSTED, _scope(ask))) is not None:
        verdict = decide.Verdict(Disposition.REFUSED, f"over_budget:{broke.scope}")
    elif result.created and ask.unpriced and ask.max_cost is not None:
        verdict = decide.Verdict(Disposition.REFUSED, "unpriced:max_cost")
    elif result.created and ask.unpriced and (limited := tx.one(HARD_LIMITED, _scope(ask))) is not None:
        verdict = decide.Verdict(Disposition.REFUSED, f"unpriced:{limited.scope}")
    elif result.created:
        kept_age = age if verdict.disposition is Disposition.TAKEOVER else None
        return dataclasses.replace(
            result, follow_ups=open_generation(tx, ask, head, run, verdict, run_id, kept_age)
        )
    refusals.note(tx, ask, head, verdict, run_id)
    return RequestResult(
        verdict.disposition,
        verdict.reason,
        head.id,
        head.run_id,
        head.generation,
        run.status if run is not None else None,
    )


def _scope(ask: Ask) -> dict[str, Any]:
    return {"b_tenant": ask.tenant, "b_scope": f"collection:{ask.collection}" if ask.collection else "tenant"}


def latest(tx: Tx, head: Head) -> tuple[RunRecord | None, decide.Life, float | None]:
    """The locked head's latest run, its signs of life and, while it is live, its age in the queue."""
    if head.run_id is None:
        return None, decide.Life(0.0, live_lease=False, last_sign_at=0.0), None
    signs = tx.one(LATEST, {"run_id": head.run_id})
    if signs is None:
        # The run's history was pruned; the head still knows how it ended.
        return rows.remembered(head), decide.Life(0.0, live_lease=False, last_sign_at=0.0), None
    run = rows.run(signs)
    if run.status not in LIVE:
        return run, decide.Life(0.0, live_lease=False, last_sign_at=0.0), None
    # Waiting for budget, rate, another worker's intent or a person is a sign of life.
    life = decide.Life(signs.lane_claimed_at, signs.live_lease or signs.waits, signs.last_sign_at)
    if signs.waits:
        life = decide.Life(float("inf"), live_lease=True, last_sign_at=float("inf"))
    elif signs.queues:
        # Slices queued in a busy lane are not dead, however long the queue is (G7).
        last_seen_at = max(signs.last_sign_at, signs.lane_claimed_at)
        life = decide.Life(signs.lane_claimed_at, signs.live_lease, last_seen_at)
    return run, life, signs.age


def open_generation(
    tx: Tx,
    ask: Ask,
    head: Head,
    old: RunRecord | None,
    verdict: decide.Verdict,
    run_id: str,
    age: float | None = None,
) -> int:
    """The head's next generation is queued with its plan task; a live older run is superseded.

    Returns how many deliveries became due because the older run ended.
    """
    callbacks = 0
    if old is not None and old.status in LIVE:
        callbacks = end_run(
            tx,
            old.id,
            Status.SUPERSEDED,
            code="superseded",
            message=f"generation {head.generation + 1} was requested",
        )
    generations.insert_run(tx, ask, head.id, head.generation + 1, verdict, run_id, age)
    return callbacks


def end_run(tx: Tx, run_id: str, status: Status, *, code: str | None, message: str | None) -> int:
    """The live run has ended as `status`: its open tasks are closed and their holders fenced out.

    Subscribers will be notified. Returns how many deliveries became due.
    """
    values = {"b_old_run": run_id, "b_old_status": status.value, "b_code": code, "b_message": message}
    tx.together(END, values)
    return after_end(tx, run_id, status, code, message)


def after_end(
    tx: Tx, run_id: str, status: Status, code: str | None = None, message: str | None = None
) -> int:
    """Every feature has handled the end of the run. Returns how many tasks became due."""
    return sum(hook.after_end(tx, run_id, status, code, message) for hook in tx.db.hooks)


def made_due(tx: Tx, head_id: int, generation: int, status: Status) -> int:
    """How many tasks became due by that end, for a transition whose response was lost."""
    return sum(hook.made_due(tx, head_id, generation, status) for hook in tx.db.hooks)


SET_STATUS = (
    update(heads)
    .where(heads.c.id == bindparam("b_head"))
    .values(status=bindparam("b_status"), updated_at=now())
)


def end_failed(tx: Tx, head: Head, run_id: str, *, code: str, message: str) -> int:
    """Run and head have failed; the published generation stays visible. Returns the same as `end_run`."""
    callbacks = end_run(tx, run_id, Status.FAILED, code=code, message=message[:2000])
    tx.execute(SET_STATUS, {"b_head": head.id, "b_status": Status.FAILED.value})
    return callbacks


def cancel(db: Database, head_id: int, *, run_id: str | None = None, actor: str = "") -> Outcome:
    """The head's live run is cancelled (only if it is `run_id`, when given); the published one stays."""
    aim = run_id

    def body(tx: Tx) -> Outcome:
        nonlocal aim
        row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})
        if row is None:
            return Fenced("unknown")
        head = rows.head(row)
        run = _run_of(tx, head)
        if tx.again and aim is not None and (ended := _cancelled(tx, aim)) is not None:
            return Landed(follow_ups=made_due(tx, head.id, ended.generation, Status.CANCELLED))
        if run is None or (aim is not None and run.id != aim):
            return Fenced("not_current")
        aim = run.id  # a retry after a lost response must not cancel a later run
        if run.status not in LIVE:
            return Fenced(f"run_{run.status}")
        message = f"cancelled by {actor or 'request'}"
        callbacks = end_run(tx, run.id, Status.CANCELLED, code="cancelled", message=message)
        tx.execute(SET_STATUS, {"b_head": head.id, "b_status": decide.after_cancel(head).value})
        journal.write(tx, _about(Verb.CANCEL, "requested", head, run.id, actor))
        return Landed(follow_ups=callbacks)

    return db.write("cancel", body)


def _cancelled(tx: Tx, run_id: str) -> RunRecord | None:
    row = tx.one(rows.RUN_BY_ID, {"run_id": run_id})
    return rows.run(row) if row is not None and row.status == Status.CANCELLED else None


def _run_of(tx: Tx, head: Head) -> RunRecord | None:
    row = tx.one(rows.RUN_BY_ID, {"run_id": head.run_id}) if head.run_id else None
    return rows.run(row) if row is not None else None


def _about(verb: Verb, reason: str, head: Head, run_id: str | None, actor: str) -> dict[str, Any]:
    return journal.entry(
        verb,
        reason,
        tenant=head.tenant,
        head_id=head.id,
        run_id=run_id,
        generation=head.generation,
        actor=actor,
    )


# Two selects, as SQLite uses no index for an OR of them.
OF_SUBJECT = union_all(
    select(heads.c.id).where(heads.c.tenant == bindparam("tenant"), heads.c.subject == bindparam("subject")),
    select(heads.c.id).where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.subject >= bindparam("low"),
        heads.c.subject <= bindparam("high"),
    ),
)
UNPUBLISH = (
    update(heads)
    .where(heads.c.id == bindparam("b_head"))
    .values(
        generation=bindparam("b_generation"),
        published_generation=bindparam("b_generation"),
        status=literal(Status.IDLE),
        run_id=bindparam("b_run"),
        fingerprint="",
        visible=False,
        deleted=True,
        imported=False,
        updated_at=now(),
    )
)


def delete(db: Database, tenant: str, subject: str, *, actor: str = "") -> list[int]:
    """Nothing of the subject is visible or running any more, of any kind. Returns the heads concerned.

    Deleting is itself a generation: workers of older ones stay fenced out for ever. Each head is its own
    transaction. After an interruption call it again; heads that are already deleted are left alone.
    """
    where = {"tenant": tenant, "subject": subject, "low": f"{subject}#", "high": f"{subject}#\U0010ffff"}
    seen: list[int] = []
    deleted: list[int] = []
    # A publication in flight may add the head of a follow-up after the first look. Once these heads are
    # deleted none of them can publish, so a look that shows no new head is the last.
    while fresh := [row.id for row in db.read(lambda tx: tx.all(OF_SUBJECT, where)) if row.id not in seen]:
        seen += fresh
        deleted += [head_id for head_id in fresh if _delete_head(db, head_id, db.token(), actor)]
    return deleted


def delete_in(tx: Tx, tenant: str, subject: str, token: str, actor: str = "") -> list[int]:
    """As `delete`, inside the caller's transaction, for the heads that exist now. `token` is a new one.

    Call `delete` afterwards for follow-ups that a publication in flight has added.
    """
    where = {"tenant": tenant, "subject": subject, "low": f"{subject}#", "high": f"{subject}#\U0010ffff"}
    heads_now = sorted(row.id for row in tx.all(OF_SUBJECT, where))
    return [head_id for head_id in heads_now if _delete_head_in(tx, head_id, f"{token}{head_id}", actor)]


def lock_in(tx: Tx, tenant: str, subject: str) -> None:
    """Every head that `delete_in` would delete is locked."""
    where = {"tenant": tenant, "subject": subject, "low": f"{subject}#", "high": f"{subject}#\U0010ffff"}
    for head_id in sorted(row.id for row in tx.all(OF_SUBJECT, where)):
        tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})


def _delete_head(db: Database, head_id: int, run_id: str, actor: str) -> bool:
    return db.write("delete", lambda tx: _delete_head_in(tx, head_id, run_id, actor))


def _delete_head_in(tx: Tx, head_id: int, run_id: str, actor: str) -> bool:
    """The head is deleted; False if it was already."""
    row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})
    if row is None:
        return False
    head = rows.head(row)
    if tx.again and tx.one(rows.RUN_BY_ID, {"run_id": run_id}) is not None:
        return True
    if head.deleted:
        return False
    run = _run_of(tx, head)
    if run is not None and run.status in LIVE:
        end_run(tx, run.id, Status.SUPERSEDED, code="deleted", message="the subject was deleted")
    generation = head.generation + 1
    tx.execute(
        generations.INSERT_RUN,
        {
            "id": run_id,
            "head_id": head.id,
            "tenant": head.tenant,
            "kind": head.kind,
            "subject": head.subject,
            "generation": generation,
            "status": Status.SUCCESS.value,
            "disposition": Disposition.ACCEPTED.value,
            "reason": "delete",
            "actor": actor,
            "lane": Lane.BULK.value,
            "priority": 0,
            "pipeline": "",
            "content": "",
            "options": {},
            "finished_at": row.now,
        },
    )
    tx.execute(UNPUBLISH, {"b_head": head.id, "b_generation": generation, "b_run": run_id})
    if head.visible:
        publish_seq.bump(tx, head.tenant, head.collection)
    noted = journal.entry(
        Verb.DELETE,
        "requested",
        tenant=head.tenant,
        head_id=head.id,
        run_id=run_id,
        generation=generation,
        actor=actor,
    )
    journal.write(tx, noted)
    return True


LAST_ASK = (
    select(
        runs.c.content,
        runs.c.options,
        runs.c.lane,
        runs.c.priority,
        runs.c.pipeline,
        heads.c.collection,
        heads.c.deleted,
        ceilings.c.most,
    )
    .join(heads, heads.c.run_id == runs.c.id)
    .outerjoin(ceilings, (ceilings.c.run_id == runs.c.id) & ceilings.c.requested)
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.kind == bindparam("kind"),
        heads.c.subject == bindparam("subject"),
    )
)


def last_ask(db: Database, tenant: str, kind: str, subject: str) -> Ask | None:
    """The latest request of the subject, to repeat it; None if there is none or it was deleted."""
    where = {"tenant": tenant, "kind": kind, "subject": subject}
    row = db.read(lambda tx: tx.one(LAST_ASK, where))
    if row is None or row.deleted:
        return None
    return Ask(
        kind=kind,
        subject=subject,
        content=row.content,
        options=row.options,
        tenant=tenant,
        collection=row.collection,
        lane=row.lane,
        priority=row.priority,
        pipeline=row.pipeline,
        max_cost=row.most,
    )


def again(last: Ask, *, actor: str) -> Ask:
    """The same request again, which creates a new generation in any case."""
    return dataclasses.replace(last, force=True, actor=actor)
