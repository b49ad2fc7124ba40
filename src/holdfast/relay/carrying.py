"""One order in the hands of a relay: admitted, marked, sent, settled, told, in this order.

The mark happens inside the gate: the connection to the provider is up and the next thing is the first byte.
So what waits for a slot or a connection is never marked, and the death of a relay leaves in doubt only what
it was sending. What comes of an order is stored before anybody is told, however long that takes.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast import faults
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.ports import Host
from holdfast.core.records import Fenced, Order
from holdfast.core.states import CallState
from holdfast.ledger.exchanges import Exchanges
from holdfast.ledger.relay_talk import DRAINING, NO_PROVIDER, OTHER, Ended, LostOrder, NotCarried
from holdfast.providers import answer_room
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Provider, Refused, Unknown
from holdfast.relay.lease import Trust
from holdfast.store.base.database import Database
from holdfast.store.money import budgets, calls, carried, orders
from holdfast.store.money.carried import OfferedOrder

log = logging.getLogger(__name__)

UNSENT = frozenset({CallState.INTENT, CallState.IN_DOUBT})


class Waiter(Protocol):
    """Someone who waits for an order."""

    def still_waits(self) -> bool:
        """False if it has hung up or dropped the order: then it is not marked any more."""
        ...

    def marked(self) -> None:
        """The order is marked: from now on this relay alone sends it."""
        ...

    def hear(self, piece: str) -> None:
        """A piece of a streamed answer; must neither wait nor raise."""
        ...


@dataclass(slots=True)
class _Attempt:
    """How far one send has come."""

    marked: Order | None = None
    refused: Fenced | None = None
    is_dropped: bool = False


class OrderCarrier:
    """Sends orders for workers. Safe to share between threads."""

    def __init__(
        self,
        db: Database,
        host: Host,
        providers: Mapping[str, Provider],
        exchanges: Exchanges,
        trust: Callable[[], Trust],
        on_throttle: Callable[[Order, float], None] = lambda _order, _delay: None,
        spool: Path | None = None,
    ) -> None:
        """`spool` is the folder in which long answers wait to be read; None to hold them in memory."""
        self._db = db
        self._host = host
        self._providers = providers
        self._exchanges = exchanges
        self._trust = trust
        self._on_throttle = on_throttle
        self._spool = spool
        self._reading = threading.Lock()

    def offered(self, order_id: str, holder: str) -> OfferedOrder | LostOrder | NotCarried:
        """The order if it may be carried for `holder`; otherwise why not."""
        offer = carried.offered(self._db, order_id)
        if offer is None:
            return NotCarried(OTHER, "the relay works on another database")
        order = offer.order
        if order.holder != holder or order.state not in UNSENT:
            return LostOrder(order.state.value)
        provider = self._providers.get(order.provider)
        if provider is None or provider.profile.in_process:
            return NotCarried(NO_PROVIDER, f"the relay has no provider {order.provider}")
        return offer

    def carry(self, offer: OfferedOrder, tries: int, waiter: Waiter) -> Ended | LostOrder | NotCarried:
        """The order was sent and what came of it is stored; or nothing was sent for it."""
        if self._spool is None:
            return self._carry(offer, tries, waiter)
        with answer_room.entered(answer_room.AnswerRoom(self._spool, self._reading)):
            return self._carry(offer, tries, waiter)

    def _carry(self, offer: OfferedOrder, tries: int, waiter: Waiter) -> Ended | LostOrder | NotCarried:
        order = carried.with_body(self._db, offer)
        attempt, token, trust = _Attempt(), self._host.token(), self._trust()
        deadline = self._host.clock() + order.deadline
        exchange = Exchange(
            endpoint=order.endpoint,
            body=order.body,
            idempotency_key=order.idempotency_key,
            # Checked again after the mark, just before the first byte: by the relay's own lease.
            send_by=min(trust.until, deadline),
            deadline=deadline,
            hear=waiter.hear,
        )
        outcome: Outcome
        try:
            outcome = self._providers[order.provider].send(
                exchange, lambda: self._gate(order, attempt, token, trust, waiter)
            )
        except budgets.OverBudgetError as error:
            return LostOrder(order.state.value, "budget", error.message)
        except StoreUnavailableError as error:
            # A mark that cannot be confirmed is never sent. If it has committed after all, it is taken back.
            self._exchanges.recorded(lambda: self._take_back(order, token))
            outcome = NotSent(f"the database did not confirm the mark: {error.message}")
        except Exception as error:  # a provider of the user's own may raise anything; what is marked must end
            log.exception("the provider %s failed", order.provider)
            outcome = Unknown(f"the provider failed: {type(error).__name__}", None)
        faults.point("relay.heard")
        if attempt.marked is None:
            return self._unmarked(order, attempt, outcome)
        return self._marked(attempt.marked, outcome, tries)

    def _gate(self, order: Order, attempt: _Attempt, token: str, trust: Trust, waiter: Waiter) -> bool:
        if not waiter.still_waits():
            attempt.is_dropped = True
            return False
        marked = carried.mark(self._db, trust.relay_id, order, token)
        if isinstance(marked, Fenced):
            attempt.refused = marked
            return False
        attempt.marked = marked
        waiter.marked()
        return True

    def _take_back(self, order: Order, token: str) -> None:
        orders.void(
            self._db, order.id, order.sends + 1, reason="not sent: mark unconfirmed", send_token=token
        )

    def _unmarked(self, order: Order, attempt: _Attempt, outcome: Outcome) -> Ended | LostOrder | NotCarried:
        refused = attempt.refused
        if attempt.is_dropped:
            return NotCarried(DRAINING, "the order was dropped before it was sent")
        if refused is None:
            failure = outcome if isinstance(outcome, NotSent) else NotSent("the connection was not used")
            return Ended(failure, marked=False)
        if refused.reason == carried.RELAY_GONE:
            return NotCarried(DRAINING, "the relay was given up by others")
        offer = carried.offered(self._db, order.id)
        state = order.state.value if offer is None else offer.order.state.value
        is_lost = refused.reason == calls.INTENT_LOST or refused.reason.startswith("order_")
        return LostOrder(state, "" if is_lost else refused.reason)

    def _marked(self, order: Order, outcome: Outcome, tries: int) -> Ended:
        if isinstance(outcome, Answered):
            self._exchanges.settle(order, outcome)
            faults.point("relay.settled")
            return Ended()
        self._exchanges.record(order, outcome)
        if isinstance(outcome, Refused) and not outcome.permanent:
            with contextlib.suppress(StoreUnavailableError):  # then the next refusal says it again
                self._on_throttle(order, self._exchanges.throttle(order, outcome, tries))
        faults.point("relay.settled")
        return Ended(outcome)
