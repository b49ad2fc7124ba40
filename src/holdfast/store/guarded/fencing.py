"""What a guarded task writes in a transaction of its application: the fence, and the end of its run.

Both write first: on SQLite only a write opens a transaction. The rows that they lock stay locked until the
application commits, so that what was true of them is still true then.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.records import Claim, Fenced, Landed, Outcome, Spent
from holdfast.store.base.database import Tx
from holdfast.store.guarded import messages
from holdfast.store.protocol import run_logs, tasks


def fence(tx: Tx, claim: Claim) -> Outcome:
    """Landed if the claim may write in the caller's transaction, whose locks keep it so until it commits."""
    _open(tx, claim)
    held = tasks.hold(tx, claim, change=False)
    if isinstance(held, Landed):
        return Fenced("run_success")  # it has ended its run itself: a newer one may be under way
    return held if isinstance(held, Fenced) else Landed()


def finish(
    tx: Tx,
    claim: Claim,
    *,
    result: Mapping[str, Any],
    spent: Spent,
    said: Sequence[run_logs.Line],
    report_after: float,
) -> Outcome:
    """The run has succeeded if the caller's transaction commits.

    Its delivery tells Celery. If that dies first, the message is published once more after so many seconds,
    and answered with the result.
    """
    _open(tx, claim)
    outcome = tasks.finish_in(tx, claim, spent=spent, result=result, said=said)
    if isinstance(outcome, Landed):
        tx.execute(messages.REPORT_LATER, {"b_run": claim.run_id, "b_after": report_after})
    return outcome


def _open(tx: Tx, claim: Claim) -> None:
    if not tx.db.postgresql:
        tx.execute(tasks.SIGN, {"b_task": claim.task_id})
