"""A call of a paid function as an order: the function is what sends it.

The order is marked sent before the function is called and settled when it returns. An exception says nothing
about money unless it is one of those that the application declared as uncharged: the order is in doubt.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast import faults
from holdfast.core.errors import BadRequestError
from holdfast.core.keys import canonical
from holdfast.core.records import Order
from holdfast.guard.money import nanos
from holdfast.guard.signals import InDoubt
from holdfast.ledger.verification import UndecidedError
from holdfast.providers.base import Answered, Exchange, NotSent, Outcome, Profile, Profiled, Refused, Unknown

PROVIDER = "function"
ENDPOINT = "call"
# The price of a function is counted in units of one nano-dollar, so that an answer may cost what it says.
DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What `verify` answers for a call that was charged: its value, and its cost unless that is the price."""

    value: Any
    cost: str | None = None


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """What `verify` is told about an order in doubt."""

    id: str
    idempotency_key: str
    tenant: str
    run_id: str | None
    arguments: Mapping[str, Any]
    sent_at: dt.datetime
    sends: int


class FunctionProvider(Profiled):
    """One call of a paid function."""

    def __init__(
        self,
        profile: Profile,
        call: Callable[[str], Any],
        *,
        price: int | None,
        uncharged: tuple[type[BaseException], ...] = (),
    ) -> None:
        """`call` gets the idempotency key of the order; `price` is in nano-dollars, None if it is unknown."""
        super().__init__(profile)
        self._call = call
        self._price = price
        self._uncharged = uncharged
        # What this call raised, and whether it answered.
        self.error: BaseException | None = None
        self.has_answered = False

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """The arguments."""
        del endpoint, model, params
        return inputs[0].encode("utf-8", "surrogatepass")

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """The function is called once, unless the gate withholds it."""
        if not gate():
            return NotSent("gate")
        faults.point("send.first_byte")
        try:
            value = self._call(exchange.idempotency_key)
        except self._uncharged as error:
            self.error = error
            return Refused(0, "uncharged", f"raised {type(error).__name__}", None, permanent=True)
        except BaseException as error:  # noqa: BLE001 - an interrupt, too; raised again
            self.error = error
            # The message stays out of the ledger: it may quote a key or a customer.
            return Unknown(f"raised {type(error).__name__}", None, code="function_raised")
        faults.point("send.answered")
        self.has_answered = True
        return self._answered(value, self._price)

    def _answered(self, value: Any, cost: int | None) -> Answered:
        return Answered((spelled(value),), 0, 0, replayed=False, units=cost)

    def count_tokens(self, text: str) -> int:
        """A function is not priced by tokens."""
        del text
        return 1

    def close(self) -> None:
        """Nothing is open."""


class VerifiedFunctionProvider(FunctionProvider):
    """One call of a paid function whose provider can be asked what became of an order."""

    def __init__(self, *args: Any, verify: Callable[[OrderFacts], Answer | None], **options: Any) -> None:
        super().__init__(*args, **options)
        self._verify = verify

    def verify(self, order: Order) -> Answered | None:
        """See `verification.Verifying`."""
        facts = OrderFacts(
            id=order.id,
            idempotency_key=order.idempotency_key,
            tenant=order.tenant,
            run_id=order.run_id,
            arguments=json.loads(order.body),
            sent_at=dt.datetime.fromtimestamp(order.first_sent_at or 0.0, dt.UTC),
            sends=order.sends,
        )
        try:
            answer: Any = self._verify(facts)
        except InDoubt as error:
            raise UndecidedError(error.message) from error
        if answer is None:
            return None
        if not isinstance(answer, Answer):
            message = f"verify must answer an Answer or None, not {type(answer).__name__}"
            raise BadRequestError(message, code="bad_answer")
        return self._answered(answer.value, self._price if answer.cost is None else nanos(answer.cost))


def spelled(value: Any) -> bytes:
    """A value as it is kept. One that is no JSON is marked: it was paid for, and nobody can be given it."""
    try:
        return canonical({"value": value}).encode("utf-8", "surrogatepass")
    except BadRequestError as error:
        return canonical({"unusable": error.message}).encode()
