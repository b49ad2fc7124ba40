"""The log of a run: its latest `MOST_LINES` lines are kept.

Lines are written under the task's fence, in a transaction that also writes something else about the task.
"""

from collections.abc import Sequence

from sqlalchemy import bindparam, delete, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import lines

MOST_LINES = 3000
MOST_TEXT = 2000
# How many extra lines may exist before the oldest are dropped in one go.
SLACK = 100

Line = tuple[str, str]
"""A line's id, which orders lines of the same moment, and its text."""

SAY = (
    upsert(lines)
    .values(run_id=bindparam("b_run"), id=bindparam("b_line"), at=now(), text=bindparam("b_text"))
    .on_conflict_do_nothing()
)
COUNT = select(func.count()).select_from(lines).where(lines.c.run_id == bindparam("run_id"))
NEWEST_TOO_OLD = (
    select(lines.c.at, lines.c.id)
    .where(lines.c.run_id == bindparam("run_id"))
    .order_by(lines.c.at.desc(), lines.c.id.desc())
    .offset(MOST_LINES)
    .limit(1)
)
DROP = delete(lines).where(
    lines.c.run_id == bindparam("b_run"),
    tuple_(lines.c.at, lines.c.id) <= tuple_(bindparam("b_at"), bindparam("b_id")),
)


def say(tx: Tx, run_id: str, said: Sequence[Line]) -> None:
    """The lines are in the run's log; the oldest are dropped if there are too many."""
    if not said:
        return
    tx.execute(
        SAY, [{"b_run": run_id, "b_line": line_id, "b_text": text[:MOST_TEXT]} for line_id, text in said]
    )
    if int(tx.execute(COUNT, {"run_id": run_id}).scalar_one()) > MOST_LINES + SLACK:
        oldest = tx.one(NEWEST_TOO_OLD, {"run_id": run_id})
        if oldest is not None:
            tx.execute(DROP, {"b_run": run_id, "b_at": oldest.at, "b_id": oldest.id})
