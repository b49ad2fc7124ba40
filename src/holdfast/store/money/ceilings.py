"""The spending limit of one run: reserved before an order is sent, like a budget, for that run alone.

The scope `run:ID` of an order says that its run has such a limit. Resending an order in doubt reserves in the
limit of the run that created it.
"""

from collections.abc import Sequence

from sqlalchemy import bindparam, case, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import WorkError
from holdfast.store.base.database import Tx
from holdfast.store.base.schema import ceilings

SORT = "run:"
_this = ceilings.c.run_id == bindparam("b_run")
# Two orders of a run may both be its first.
NEW = upsert(ceilings).on_conflict_do_nothing()
OF_RUN = select(ceilings).where(_this)
OF_RUN_FOR_CHANGE = OF_RUN.with_for_update()
RESERVE = update(ceilings).where(_this).values(reserved=ceilings.c.reserved + bindparam("b_amount"))
_left = ceilings.c.reserved - bindparam("b_freed")
ACCOUNT = (
    update(ceilings)
    .where(_this)
    .values(spent=ceilings.c.spent + bindparam("b_spent"), reserved=case((_left > 0, _left), else_=0))
)


def scopes(tx: Tx, scopes: Sequence[str], run_id: str, usual: int | None = None) -> list[str]:
    """The scopes of an order of this run, including its own limit if it has one.

    A run whose request set no limit has the limit `usual`, from its first paid order on.
    """
    if not run_id:
        return list(scopes)
    limited = tx.one(OF_RUN, {"b_run": run_id}) is not None
    if not limited and usual is not None:
        tx.execute(NEW, {"run_id": run_id, "most": usual, "requested": False})
        limited = True
    return [*scopes, f"{SORT}{run_id}"] if limited else list(scopes)


def _runs(scopes: Sequence[str]) -> list[str]:
    return [scope.removeprefix(SORT) for scope in scopes if scope.startswith(SORT)]


def reserve(tx: Tx, scopes: Sequence[str], amount: int, *, unpriced: bool) -> None:
    """`amount` is reserved in the limit of the run; otherwise WorkError, and nothing was sent."""
    for run in _runs(scopes):
        row = tx.one(OF_RUN_FOR_CHANGE, {"b_run": run})
        if row is None:
            continue
        if unpriced:
            message = (
                "the run has a `max_cost`, but no price is known for the model; set one, or omit `max_cost`"
            )
            raise WorkError(message, code="unpriced")
        if row.spent + row.reserved + amount > row.most:
            message = "the next call would exceed the run's `max_cost`; request it again with a higher one"
            raise WorkError(message, code="over_max_cost")
        tx.execute(RESERVE, {"b_run": run, "b_amount": amount})


def account(tx: Tx, scopes: Sequence[str], *, spent: int, freed: int) -> None:
    """The reservation of an ended order is released and its cost is spent."""
    for run in _runs(scopes):
        tx.execute(ACCOUNT, {"b_run": run, "b_spent": spent, "b_freed": freed})
