"""The cost of calls before they are made: known calls cost nothing, the rest by the provider's estimate.

Nothing is written, reserved or sent. Tokens are estimated as for a reservation, which is rather too high than
too low.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.core.errors import BadRequestError
from holdfast.ledger import pay
from holdfast.ledger.pay import Call
from holdfast.ledger.prices import PriceTable
from holdfast.providers.base import Provider
from holdfast.store.base.database import Database
from holdfast.store.money import billing

STEP = 500


@dataclass(frozen=True, slots=True)
class Forecast:
    """Calls to be paid, with tokens and price in nano-dollars, and calls already in the ledger."""

    calls: int = 0
    tokens: int = 0
    cost: int = 0
    known_calls: int = 0
    known_tokens: int = 0
    # Calls to be paid whose model has no price; they are not included in `cost`.
    unpriced_calls: int = 0

    @property
    def price(self) -> int | None:
        """The estimated cost; None if no price is known for any of it."""
        return None if self.unpriced_calls and not self.cost else self.cost

    def __add__(self, other: "Forecast") -> "Forecast":
        """The sum, field by field."""
        names = Forecast.__dataclass_fields__
        return Forecast(*(getattr(self, name) + getattr(other, name) for name in names))

    def times(self, factor: float) -> "Forecast":
        """Each field multiplied, rounded to whole numbers."""
        return Forecast(*(round(getattr(self, name) * factor) for name in Forecast.__dataclass_fields__))


class Foresight:
    """Adds up calls of one tenant; each distinct input counts once, as the ledger would pay for it."""

    def __init__(
        self, db: Database, providers: Mapping[str, Provider], table: PriceTable, tenant: str
    ) -> None:
        self._db = db
        self._providers = providers
        self._table = table
        self._tenant = tenant
        self._seen: set[str] = set()

    def of(self, calls: Iterable[Call]) -> Forecast:
        """What these calls would cost in addition to all calls estimated before."""
        fresh: dict[str, Call] = {}
        for call in calls:
            key = call.key(self._tenant)
            if key not in self._seen:
                self._seen.add(key)
                fresh[key] = call
        total = Forecast()
        keys = list(fresh)
        for start in range(0, len(keys), STEP):
            some = keys[start : start + STEP]
            known = billing.settled(self._db, self._tenant, some)
            total += sum((self._one(fresh[key], known=key in known) for key in some), Forecast())
        return total

    def _one(self, call: Call, *, known: bool) -> Forecast:
        provider = self._providers.get(call.provider)
        if provider is None:
            message = (
                f"provider {call.provider!r} is not set up here; set HOLDFAST_EMBEDDING_PROVIDER "
                "or HOLDFAST_LLM_PROVIDER"
            )
            raise BadRequestError(message, code="no_provider")
        tokens, _output = pay.expected_tokens(self._table, provider, call)
        if known:
            return Forecast(known_calls=1, known_tokens=tokens)
        cost = pay.expected_cost(self._table, provider, call)
        return Forecast(1, tokens, cost or 0, unpriced_calls=int(cost is None))
