"""Sends one marked order and records its outcome, whatever it is and however long that takes.

A response that has arrived was paid for. It is held for as long as this process lives: an unreachable
database only delays the settlement. Meanwhile the carrier's lease cannot be renewed either, so the first
sweep after an outage grants one lease period of grace before the order may be put in doubt
(`store.money.orders.recover`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol, TypeVar, runtime_checkable

from holdfast import faults
from holdfast.core import decide, retry
from holdfast.core.errors import MustWaitError, ProviderRefusedError, StoreUnavailableError, WorkError
from holdfast.core.ports import Host
from holdfast.core.records import Claim, LedgerEntry, Order
from holdfast.core.states import CallState
from holdfast.ledger import prices
from holdfast.ledger.carrier import Carrier
from holdfast.providers.base import Answered, Exchange, NotSent, Provider, Refused, Unknown
from holdfast.store.base.database import Database
from holdfast.store.money import budgets, orders

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Policy:
    """How the ledger behaves where the protocol leaves a choice."""

    concurrency: int = 4
    wait: float = 30.0
    poll: float = 0.1
    short_wait: float = 2.0
    nap: float = 0.5
    most_poll: float = 0.5
    most_sends: int = 8
    in_doubt: str = "resend"
    most_doubts: int = 5
    park_above: int | None = None
    # The spending limit of a run whose request sets none.
    max_run_cost: int | None = None
    cheap: int = orders.CHEAP
    stale_intent: float = 60.0
    budget_delay: float = 30.0
    parked_delay: float = 60.0
    # Orders are sent by a relay or not at all.
    relay_required: bool = False
    backoff: retry.Backoff = field(default_factory=retry.Backoff)
    waits: decide.RivalWaits = field(default_factory=decide.RivalWaits)

    def between_looks(self, looks: int) -> float:
        """Seconds until the next check of what another worker is paying for, after so many checks."""
        return (
            min(self.most_poll, self.poll * 1.5 ** min(looks, 20))
            if self.poll < self.most_poll
            else self.poll
        )


class Holder(Protocol):
    """The payer: a claim whose lease is watched."""

    @property
    def claim(self) -> Claim:
        """The claim under which the order is sent."""
        ...

    def check(self) -> None:
        """Return while new orders may be sent; otherwise raise a WorkStopped."""
        ...

    def trusted(self) -> bool:
        """True while the lease is trusted; checked again just before the first byte."""
        ...

    def trusted_until(self) -> float:
        """The host's clock value at which trust ends."""
        ...

    def waiting(self, waits: bool) -> None:
        """The holder only waits for another worker's order from now on; or that wait is over."""
        ...


@runtime_checkable
class StreamListener(Protocol):
    """A holder who hears a streamed answer while it arrives. What is settled is the whole of it."""

    def hear(self, piece: str) -> None:
        """A piece of the answer has arrived; must neither wait nor raise."""
        ...

    def hear_again(self) -> None:
        """An order is sent: what was heard of an earlier one is void."""
        ...


class Exchanges:
    """How this process sends orders."""

    def __init__(
        self, db: Database, host: Host, table: prices.PriceTable, policy: Policy, carrier: Carrier
    ) -> None:
        self._db = db
        self._host = host
        self._table = table
        self._policy = policy
        self._carrier = carrier

    def carry_out(
        self, provider: Provider, holder: Holder, order: Order, began: float, tries: int
    ) -> dict[str, LedgerEntry]:
        """Send the marked order and record its outcome. Returns the calls that it settled."""
        deadline = began + order.deadline
        listener = holder if isinstance(holder, StreamListener) else None
        if listener is not None:
            listener.hear_again()
        exchange = Exchange(
            endpoint=order.endpoint,
            body=order.body,
            idempotency_key=order.idempotency_key,
            send_by=min(holder.trusted_until(), deadline),
            deadline=deadline,
            hear=None if listener is None else listener.hear,
        )
        with self._carrier.carrying(order.id, deadline):
            outcome = provider.send(exchange, holder.trusted)
            faults.point("send.heard")
            if isinstance(outcome, Answered):
                return self.settle(order, outcome)
            self.record(order, outcome)
        self.go_on(holder, order, outcome, tries)
        return {}

    def record(self, order: Order, outcome: Refused | NotSent | Unknown) -> None:
        """Record the outcome of an order without a response in the ledger."""
        record: Callable[..., CallState] = orders.void
        facts: dict[str, Any]
        match outcome:
            case Unknown(reason=reason, status=status):
                record, facts = orders.doubt, {"reason": reason, "status": status}
            case NotSent(reason):
                facts = {"reason": f"not sent: {reason}"}
            case Refused():
                facts = {"reason": outcome.message, "status": outcome.status}
                facts["for_good"] = _is_mixed(order, outcome)
        self.recorded(lambda: record(self._db, order.id, order.sends, **facts))

    def go_on(
        self,
        holder: Holder,
        order: Order,
        outcome: Refused | NotSent | Unknown,
        tries: int,
        *,
        throttled: bool = False,
    ) -> None:
        """Return if it may be retried, after a wait if necessary; raise if not.

        `throttled`: the relay that sent the order has recorded how long the provider asked to wait.
        """
        match outcome:
            case Refused(permanent=True):
                if _is_mixed(order, outcome) and order.sends > 1:
                    return  # it may carry inputs of others too; mine now go into a separate order
                raise ProviderRefusedError(
                    f"the provider refused the call ({outcome.status}): {outcome.message}",
                    code=f"provider_{outcome.code}",
                )
            case Refused():
                if not throttled:
                    self.throttle(order, outcome, tries)
            case NotSent():
                holder.check()
                if tries >= self._policy.most_sends:
                    message = f"the provider cannot be reached ({outcome.reason})"
                    raise MustWaitError(message, reason="provider", delay=self._policy.budget_delay)
                self.pause(holder, self._policy.backoff.delay(tries, self._host.jitter()))
            case Unknown(reason=reason, code=code) if code:
                raise WorkError(f"the order is in doubt: {reason}", code=code)

    def throttle(self, order: Order, refused: Refused, tries: int) -> float:
        """All workers wait as long as the provider asked to. Returns the seconds."""
        delay = retry.provider_delay(self._policy.backoff, tries, self._host.jitter(), refused.retry_after)
        budgets.throttle(self._db, throttle_scope(order.provider, order.endpoint, order.model), delay)
        return delay

    def settle(self, order: Order, answer: Answered) -> dict[str, LedgerEntry]:
        """The answer and its cost are recorded. Returns the calls that it settled."""
        if len(answer.results) != len(order.call_keys):
            self.record(order, Unknown("the answer has the wrong number of results", HTTPStatus.OK))
            return {}
        weights = list(order.weights)
        spent = answer.input_tokens, answer.output_tokens
        cost = self._table.cost(order.model, *spent, provider=order.provider, units=answer.units)
        receipt = orders.Receipt(
            results=answer.results,
            tokens=prices.split(answer.input_tokens + answer.output_tokens, weights),
            costs=prices.split(cost or 0, weights),
            prices=orders.UNPRICED if cost is None else self._version(answer),
            replayed=answer.replayed,
        )
        counts = self.recorded(lambda: orders.settle(self._db, order.id, order.sends, receipt))
        return _entries(order, receipt) if counts else {}

    def _version(self, answer: Answered) -> str:
        """By which prices the answer is on the bill, and whether its tokens are an estimate."""
        return f"{self._table.version} estimated" if answer.is_estimated else self._table.version

    def recorded(self, record: Callable[[], T]) -> T:
        """The result of `record`, retried until the database is reachable."""
        while True:
            try:
                return record()
            except StoreUnavailableError:
                self._host.sleep(self._policy.backoff.first)

    def pause(self, holder: Holder, seconds: float) -> None:
        """Wait, but stop waiting when the lease is lost or the worker is stopping."""
        until = self._host.clock() + seconds
        while (left := until - self._host.clock()) > 0:
            self._host.sleep(min(left, self._policy.nap))
            holder.check()


def _is_mixed(order: Order, outcome: Refused) -> bool:
    """True if one of several inputs may be bad: the others must not be blocked with it."""
    return outcome.permanent and outcome.code == "rejected" and len(order.call_keys) > 1


def throttle_scope(provider: str, endpoint: str, model: str) -> str:
    """The scope that waits when a provider asks to slow down."""
    return f"{provider}/{endpoint}/{model}"


def _entries(order: Order, receipt: orders.Receipt) -> dict[str, LedgerEntry]:
    rows = zip(order.call_keys, receipt.results, receipt.tokens, receipt.costs, strict=True)
    return {
        key: LedgerEntry(key, CallState.SETTLED, order.id, order.run_id, result, tokens, cost)
        for key, result, tokens, cost in rows
    }
