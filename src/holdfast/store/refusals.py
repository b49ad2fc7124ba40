"""Requests that made no generation: noted with who asked, when, and what a duplicate would have cost.

What a duplicate would have cost is the full price of the run that stood in its way: all that was charged to
that run, and all that it took from the ledger instead of paying. At the moment of the refusal that run may
just have begun, so the note keeps the best that is known then: the price of that run so far, or of the
published generation if that is more. Readers take the larger of the note and the run's price by now, so that
the bill and the journal say the same and both are right once the run has ended.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Row, bindparam, cast, func, select

from holdfast.core.decide import Verdict
from holdfast.core.records import Ask, Head
from holdfast.core.states import Disposition, Verb
from holdfast.store import journal
from holdfast.store.database import Tx
from holdfast.store.rows import literal
from holdfast.store.schema import charges, runs, tasks
from holdfast.store.schema import journal as entries

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


PRICES = select(price_of(runs.c.id).label("price")).where(
    runs.c.head_id == bindparam("head_id"),
    runs.c.generation.in_([bindparam("generation"), bindparam("published")]),
)


def would_cost(tx: Tx, head: Head) -> int:
    """What a duplicate of the head's live run would cost, as far as that is known now; in nano-dollars."""
    values = {"head_id": head.id, "generation": head.generation, "published": head.published_generation}
    return max((int(row.price) for row in tx.all(PRICES, values)), default=0)


def note(tx: Tx, ask: Ask, head: Head, verdict: Verdict, token: str) -> None:
    """The refusal is in the journal, once; `token` tells this request from all others.

    A try whose answer was lost may have been refused for another reason: then both are there, and the last
    is the answer.
    """
    reason = f"{verdict.disposition}:{verdict.reason}"
    if tx.again and any(_is(row, reason, token) for row in tx.all(journal.LATEST, {"head_id": head.id})):
        return
    data: dict[str, Any] = {"ask": token}
    if verdict.disposition is Disposition.DUPLICATE:
        data[WOULD_COST] = would_cost(tx, head)
    noted = journal.entry(
        Verb.REQUEST,
        reason,
        tenant=ask.tenant,
        head_id=head.id,
        run_id=head.run_id,
        generation=head.generation,
        actor=ask.actor,
        data=data,
    )
    journal.write(tx, noted)


def _is(row: Row[Any], reason: str, token: str) -> bool:
    return row.reason == reason and (row.data or {}).get("ask") == token
