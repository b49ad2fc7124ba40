"""The worker's side of a relay: an order is handed over unsent, and what comes of it is heard or looked up.

Until the relay has marked the order, either may mark it, and the row decides. So a worker that hears nothing
in time simply goes on: with `auto` it marks the order itself, with `require` it voids it. If the relay was
first, both fail on the row, and the worker waits for what the relay carries. Once it has heard of the mark it
never sends the order itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.core.errors import (
    FencedOutError,
    MustWaitError,
    StoreUnavailableError,
    TimeLimitError,
    WorkStopped,
)
from holdfast.core.records import Order
from holdfast.core.states import CallState
from holdfast.ledger import relay_talk
from holdfast.ledger.exchanges import Holder, StreamListener
from holdfast.ledger.relay_talk import Ended, Failure, LostOrder, NotCarried, Relays, Unheard
from holdfast.store.base.database import Database
from holdfast.store.money import orders

# Seconds until a task whose order no relay takes is tried again.
AGAIN_AFTER = 2.0
RELAY = "relay"
OPEN = frozenset({CallState.INTENT, CallState.SENT})


@dataclass(frozen=True, slots=True)
class Relayed:
    """The order is out of this process's hands. `failure` is what the relay heard, if that is known."""

    failure: Failure | None = None
    is_settled: bool = False


class HandOver:
    """Hands orders to a relay. `required`: nothing is sent by this process itself."""

    def __init__(self, db: Database, relays: Relays, rules: orders.OrderRules, *, required: bool) -> None:
        """`rules` are those for an order whose relay is not heard of."""
        self._db = db
        self._rules = rules
        self._relays = relays
        self.required = required

    def check(self) -> None:
        """Return if orders may be intended; MustWaitError if a relay is required and there is none."""
        if self.required and not self._relays.is_there():
            raise MustWaitError(
                "no relay runs on this host; start one with: holdfast relay", reason=RELAY, delay=AGAIN_AFTER
            )

    def hand_over(self, holder: Holder, order: Order, tries: int) -> Relayed | None:
        """What became of the order in the hands of a relay; None if this process is to send it itself.

        Raises MustWaitError or FencedOutError, and whatever `holder.check` raises; then the order is void,
        unless it was marked.
        """
        listener = holder if isinstance(holder, StreamListener) else None
        if listener is not None:
            listener.hear_again()
        hear: Callable[[str], None] | None = None if listener is None else listener.hear
        try:
            reply = self._relays.carry(
                order.id,
                holder.claim.token,
                tries=tries,
                check=holder.check,
                is_over=lambda: self._has_ended(order),
                hear=hear,
            )
        except (WorkStopped, TimeLimitError, MustWaitError) as error:
            self._void(order, f"not sent: {error}")
            raise
        match reply:
            case Unheard():
                return Relayed()
            case Ended(failure=failure, marked=marked):
                if not marked:
                    self._void(order, "not sent by the relay")
                return Relayed(failure, is_settled=failure is None)
            case LostOrder():
                return self._lost(order, reply)
            case NotCarried():
                return self._not_carried(order, reply)

    def _has_ended(self, order: Order) -> bool:
        """True if the order has ended, or its relay is gone; an unreachable database says neither."""
        try:
            return orders.recover(self._db, order.id, self._rules) not in OPEN
        except StoreUnavailableError:
            return False

    def _lost(self, order: Order, reply: LostOrder) -> Relayed:
        if reply.reason == "budget":
            raise MustWaitError(reply.message, reason="budget", delay=AGAIN_AFTER)
        if reply.reason:
            self._void(order, f"fenced out before sending: {reply.reason}")
            raise FencedOutError(f"fenced out before sending: {reply.reason}")
        return Relayed()

    def _not_carried(self, order: Order, reply: NotCarried) -> Relayed | None:
        if not self.required and reply.reason != relay_talk.RATE:
            return None
        state = self._void(order, f"not carried: {reply.reason}")
        if state is CallState.SENT:
            return Relayed()  # the relay marked it after all
        message = reply.message or "no relay took the order"
        reason = "rate" if reply.reason == relay_talk.RATE else RELAY
        raise MustWaitError(message, reason=reason, delay=max(reply.after, AGAIN_AFTER))

    def _void(self, order: Order, reason: str) -> CallState:
        """The order is void if it was not marked. An order in doubt stays so."""
        if order.state is not CallState.INTENT:
            return order.state
        return orders.void(self._db, order.id, order.sends, reason=reason)
