"""Hooks of follow-ups and callbacks: they are created in the transaction of their cause."""

from sqlalchemy import bindparam, func, null, select

from holdfast.core.records import Head
from holdfast.core.states import Status
from holdfast.store.base.database import Hook, Tx
from holdfast.store.base.schema import follow_ups, runs
from holdfast.store.follow_ups import actions, deliveries

_run = (runs.c.head_id == bindparam("head_id"), runs.c.generation == bindparam("generation"))
MADE_DUE = select(
    select(func.count())
    .select_from(follow_ups)
    .where(follow_ups.c.head_id == bindparam("head_id"), follow_ups.c.generation == bindparam("generation"))
    .scalar_subquery()
    .label("follow_ups"),
    select(func.count())
    .select_from(runs)
    .where(*_run, runs.c.status == bindparam("status"), runs.c.callback.is_not(null()))
    .scalar_subquery()
    .label("callbacks"),
)


class FollowUpHook(Hook):
    """Each action has a run for every ready document of the collection; callbacks report the end of a run."""

    def after_publish(self, tx: Tx, head: Head, generation: int, run_id: str) -> int:
        """The follow-ups of the generation are queued. Returns how many."""
        return actions.follow_up(tx, head, generation, run_id) if head.collection is not None else 0

    def after_end(self, tx: Tx, run_id: str, status: Status, code: str | None, message: str | None) -> int:
        """The callback of the run, if any, is due."""
        return deliveries.call_back(tx, run_id, status, code, message)

    def made_due(self, tx: Tx, head_id: int, generation: int, status: Status) -> int:
        """The follow-ups of a publication, and the callback of any end."""
        values = {"head_id": head_id, "generation": generation, "status": status.value}
        row = tx.execute(MADE_DUE, values).one()
        return int(row.callbacks) + (int(row.follow_ups) if status is Status.SUCCESS else 0)

    def prune_history(self, tx: Tx, older_than: float, limit: int) -> int:
        """Ended deliveries of that age are deleted."""
        return deliveries.prune(tx, older_than, limit)
