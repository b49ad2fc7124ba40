"""The journal: one row per decision, written in the transaction of the decision, never changed."""

from typing import Any

from sqlalchemy import bindparam, insert, select

from holdfast.core.records import Claim
from holdfast.core.states import Verb
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import journal

WRITE = insert(journal).values(
    at=now(),
    tenant=bindparam("j_tenant"),
    verb=bindparam("j_verb"),
    reason=bindparam("j_reason"),
    head_id=bindparam("j_head_id"),
    run_id=bindparam("j_run_id"),
    task_id=bindparam("j_task_id"),
    generation=bindparam("j_generation"),
    epoch=bindparam("j_epoch"),
    actor=bindparam("j_actor"),
    data=bindparam("j_data"),
)
"""For use in a `Together`; `entry` returns its values."""


def entry(
    verb: Verb,
    reason: str,
    *,
    tenant: str,
    head_id: int | None = None,
    run_id: str | None = None,
    task_id: int | None = None,
    generation: int | None = None,
    epoch: int | None = None,
    actor: str | None = None,
    data: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The bound values of one journal row."""
    return {
        "j_tenant": tenant,
        "j_verb": verb.value,
        "j_reason": reason,
        "j_head_id": head_id,
        "j_run_id": run_id,
        "j_task_id": task_id,
        "j_generation": generation,
        "j_epoch": epoch,
        "j_actor": actor,
        "j_data": data,
    }


def of_claim(verb: Verb, reason: str, claim: Claim, data: dict[str, Any] | None = None) -> dict[str, Any]:
    """The bound values of a row about something that the holder of `claim` did."""
    return entry(
        verb,
        reason,
        tenant=claim.tenant,
        head_id=claim.head_id or None,
        run_id=claim.run_id or None,
        task_id=claim.task_id or None,
        generation=claim.generation,
        epoch=claim.epoch,
        actor=claim.owner,
        data=data,
    )


def write(tx: Tx, values: dict[str, Any]) -> None:
    """Append one row."""
    tx.execute(WRITE, values)


AGAIN_LOOKS_AT = 50
LATEST = (
    select(journal)
    .where(journal.c.head_id == bindparam("head_id"))
    .order_by(journal.c.xid.desc(), journal.c.id.desc())
    .limit(AGAIN_LOOKS_AT)
)


def has(tx: Tx, values: dict[str, Any]) -> bool:
    """True if this row is already among the latest of its head.

    For a retry after a lost response: `values` must include something drawn before the first try.
    """
    names = [name for name in values if name != "j_tenant"]
    expected = [values[name] for name in names]
    latest = tx.all(LATEST, {"head_id": values["j_head_id"]})
    return any([getattr(row, name.removeprefix("j_")) for name in names] == expected for row in latest)


def once(tx: Tx, values: dict[str, Any]) -> None:
    """Append one row, unless an earlier try of this transaction did and its response was lost."""
    if not (tx.again and has(tx, values)):
        write(tx, values)


def of_head(tx: Tx, head_id: int, limit: int = 1000) -> list[dict[str, Any]]:
    """The latest `limit` decisions about one head, oldest first."""
    columns = [column for column in journal.c if column.key != "xid"]
    query = select(*columns).where(journal.c.head_id == head_id)
    latest = query.order_by(journal.c.xid.desc(), journal.c.id.desc()).limit(limit)
    return [row._asdict() for row in reversed(tx.all(latest))]
