"""Requests that made no generation: noted with who asked, when, and what a duplicate would have cost.

What a duplicate would have cost is the full price of the run that stood in its way: all that was charged to
that run, and all that it took from the ledger instead of paying. At the moment of the refusal that run may
just have begun, so the note keeps the best that is known then: the price of that run so far, or of the
published generation if that is more. Readers take the larger of the note and the run's price by now, so that
the bill and the journal say the same and both are right once the run has ended.
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
# As a literal, like the partial index over it.
IS_DUPLICATE = entries.c.reason == literal(f"{Disposition.DUPLICATE}:in_progress")
NOTED = func.coalesce(cast(entries.c.data[WOULD_COST].as_string(), BigInteger), 0)


def price_of(run_id: ColumnElement[Any]) -> ColumnElement[int]:
    """The full price of a run by now: what it was charged, and what it took from the ledger instead."""
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
# With the price in it: whoever else asks for the same waits for the head that is held meanwhile.
DUPLICATE = {
    is_postgresql: journal.WRITE.values(
        data=made(literal("ask"), bindparam("ask", type_=Text), literal(WOULD_COST), _would_cost)
    )
    for is_postgresql, made in ((True, func.json_build_object), (False, func.json_object))
}


def note(tx: Tx, ask: Ask, head: Head, verdict: Verdict, token: str) -> None:
    """The refusal is in the journal, once; `token` tells this request from all others.

    A try whose answer was lost may have been refused for another reason: then both are there, and the last
    is the answer.
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
