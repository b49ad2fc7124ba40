"""A follow-up that ended without success is requested again; paid calls are reused."""

from sqlalchemy import bindparam, select, update

from holdfast.core import decide, subjects
from holdfast.core.records import Ask, Fenced, Head, Landed, Outcome
from holdfast.core.states import LIVE, Disposition, Lane, Status
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import actions, follow_ups, heads, runs
from holdfast.store.protocol import requests

MARK = "#action:"


def subject_of(document: str, action_id: int) -> str:
    """The subject of an action's follow-up of a document."""
    return f"{document}{MARK}{action_id}"


TARGET = (
    select(heads.c.id)
    .where(heads.c.tenant == bindparam("tenant"), heads.c.subject == bindparam("subject"))
    .limit(1)
)
LAST = select(runs.c.content, runs.c.options, runs.c.pipeline, runs.c.priority).where(
    runs.c.id == bindparam("run_id")
)
ACTIVE = select(actions.c.id).where(actions.c.id == bindparam("action_id"), actions.c.active)
DOCUMENT = select(heads.c.id).where(
    heads.c.tenant == bindparam("tenant"),
    heads.c.kind == subjects.INDEX,
    heads.c.subject == bindparam("subject"),
)
POINT = (
    update(follow_ups)
    .where(
        follow_ups.c.action_id == bindparam("b_action"),
        follow_ups.c.head_id == bindparam("b_head"),
        follow_ups.c.run_id == bindparam("b_old"),
    )
    .values(run_id=bindparam("b_new"))
)


def head_of(db: Database, tenant: str, subject: str) -> int | None:
    """The head of a follow-up, if there is one of this subject."""
    row = db.first(TARGET, {"tenant": tenant, "subject": subject})
    return None if row is None else int(row.id)


def retry(
    db: Database, tenant: str, subject: str, *, run_id: str, actor: str, max_cost: int | None = None
) -> Outcome:
    """The follow-up is queued again as its own generation, which replaces it in the list of follow-ups.

    Fenced out if there is none, it is live or has succeeded, or its action was removed.
    """
    head_id = head_of(db, tenant, subject)
    if head_id is None:
        return Fenced("unknown")

    def body(tx: Tx) -> Outcome:
        row = tx.one(rows.HEAD_FOR_CHANGE, {"head_id": head_id})
        if row is None or row.deleted:
            return Fenced("unknown")
        head = rows.head(row)
        if tx.again and head.run_id == run_id:
            return Landed(follow_ups=1)
        return _again(tx, head, run_id, actor, max_cost)

    return db.write("retry_follow_up", body)


def _again(tx: Tx, head: Head, run_id: str, actor: str, max_cost: int | None) -> Outcome:
    if head.status in LIVE or head.status is Status.SUCCESS:
        return Fenced(f"run_{head.status}")
    document, _, action = head.subject.partition(MARK)
    last, action_id = tx.one(LAST, {"run_id": head.run_id}), int(action)
    if last is None or tx.one(ACTIVE, {"action_id": action_id}) is None:
        return Fenced("action_removed")
    ask = Ask(
        kind=head.kind,
        subject=head.subject,
        content=last.content,
        options=last.options,
        tenant=head.tenant,
        collection=head.collection,
        lane=Lane.FOLLOW_UP,
        priority=last.priority,
        pipeline=last.pipeline,
        actor=actor,
        max_cost=max_cost,
    )
    run, _life, _age = requests.latest(tx, head)
    reason = "after_failed" if head.status is Status.FAILED else "after_cancelled"
    verdict = decide.Verdict(Disposition.ACCEPTED, reason)
    requests.open_generation(tx, ask, head, run, verdict, run_id)
    followed = tx.one(DOCUMENT, {"tenant": head.tenant, "subject": document})
    if followed is not None:
        values = {"b_action": action_id, "b_head": followed.id, "b_old": head.run_id, "b_new": run_id}
        tx.execute(POINT, values)
    return Landed(follow_ups=1)
