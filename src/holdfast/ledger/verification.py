"""An order in doubt about which the provider can be asked: adopted if it was charged, void if it was not.

The answer concerns the send that was in doubt when the question was put. A slow answer about an order that
was sent again, settled or freed meanwhile changes nothing.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from holdfast.core.records import LedgerEntry, Order
from holdfast.core.states import CallState
from holdfast.providers.base import Answered
from holdfast.store.base.database import Database
from holdfast.store.money import calls, orders

ACTOR = "verify"


class UndecidedError(Exception):
    """Only a person can say whether the order was charged; the message says why."""


@runtime_checkable
class Verifying(Protocol):
    """A provider that can be asked what became of an order."""

    def verify(self, order: Order) -> Answered | None:
        """What the order answered if it was charged, None if it was not; UndecidedError if neither is sure.

        Whatever else it raises is passed on, and the order stays in doubt.
        """


def verified(
    db: Database,
    provider: Verifying,
    order_id: str,
    settle: Callable[[Order, Answered], dict[str, LedgerEntry]],
) -> dict[str, LedgerEntry]:
    """The order in doubt is settled, void or parked, as the provider says. Returns the calls it settled."""
    row = db.read(lambda tx: tx.one(calls.ORDER, {"order_id": order_id}))
    if row is None or row.state != CallState.IN_DOUBT:
        return {}
    order = calls.order(row)
    try:
        answer = provider.verify(order)
    except UndecidedError as error:
        orders.park(db, order_id, reason=str(error))
        return {}
    if answer is not None:
        return settle(order, answer)
    orders.resolve(db, order_id, charged=False, actor=ACTOR, send=order.sends)
    return {}
