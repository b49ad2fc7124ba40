"""Requests that created no generation: recorded with actor, time and what a duplicate would have cost.

A duplicate would have cost the full price of the run that blocked it: everything charged to that run plus
everything it reused from the ledger. At the time of the refusal that run may only have started, so the record
keeps the best value known then: the price of that run so far, or of the published generation if that is
higher. Readers take the larger of the record and the run's current price, so that bill and journal agree and
both are right once the run has ended.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Row, Text, bindparam, cast, func, select

from holdfast.core.decide import Verdict
from holdfast.core.records import Ask, Head
from holdfast.core.states import Disposition, Verb
from holdfast.store.base import journal
from holdfast.store.base.database import Tx
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import charges, runs, tasks
from holdfast.store.base.schema import journal as entries

WOULD_COST = "would_cost"
# A literal, as in the partial index over it.
IS_DUPLICATE = entries.c.reason == literal(f"{Disposition.DUPLICATE}:in_progress")
NOTED = func.coalesce(cast(entries.c.data[WOULD_COST].as_string(), BigInteger), 0)


def price_of(run_id: ColumnElement[Any]) -> ColumnElement[int]:
    """The full price of a run so far: what it was charged plus what it reused from the ledger."""
    charged = select(func.coalesce(func.sum(charges.c.amount), 0)).where(
        charges.c.run_id == run_id, charges.c.sort != "in_doubt"
    )
    reused = select(func.coalesce(func.sum(tasks.c.saved), 0)).where(tasks.c.run_id == run_id)
    return cast(charged.scalar_subquery() + reused.scalar_subquery(), BigInteger)


_would_cost = cast(
    select(func.coalesce(func.max(price_of(runs.c.id)), 0))
    .where(
        runs.c.head_id == bindparam("j_head_id", type_=BigInteger),
        runs.c.generation.in_([bindparam("j_generation", type_=BigInteger), bindparam("published")]),
    )
    .scalar_subquery(),
    BigInteger,
)
# Includes the price, because others who request the same thing wait for the locked head meanwhile.
DUPLICATE = {
    is_postgresql: journal.WRITE.values(
        data=json_object(literal("ask"), bindparam("ask", type_=Text), literal(WOULD_COST), _would_cost)
    )
    for is_postgresql, json_object in ((True, func.json_build_object), (False, func.json_object))
}


def note(tx: Tx, ask: Ask, head: Head, verdict: Verdict, token: str) -> None:
    """The refusal is in the journal once; `token` identifies this request.

    A try whose response was lost may have been refused for another reason: then both are recorded, and the
    last one is the result.
    """
    reason = f"{verdict.disposition}:{verdict.reason}"
    if tx.again and any(_is(row, reason, token) for row in tx.all(journal.LATEST, {"head_id": head.id})):
        return
    noted = journal.entry(
        Verb.REQUEST,
        reason,
        tenant=ask.tenant,
        head_id=head.id,
        run_id=head.run_id,
        generation=head.generation,
        actor=ask.actor,
        data={"ask": token},
    )
    if verdict.disposition is not Disposition.DUPLICATE:
        journal.write(tx, noted)
        return
    del noted["j_data"]
    noted |= {"ask": token, "published": head.published_generation}
    tx.execute(DUPLICATE[tx.db.postgresql], noted)


def _is(row: Row[Any], reason: str, token: str) -> bool:
    return row.reason == reason and (row.data or {}).get("ask") == token
