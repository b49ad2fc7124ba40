"""A provider whose exchanges are spans: `order`, below the paying task or request."""

from collections.abc import Callable

from holdfast.core.records import Order
from holdfast.ledger.verification import Verifying
from holdfast.ledger.wrapped_provider import WrappedProvider
from holdfast.providers.base import Answered, Exchange, Outcome, Provider
from holdfast.telemetry import traces


class TracedProvider(WrappedProvider):
    """Wraps a provider with tracing. Neither body nor key is recorded."""

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """See `Provider.send`."""
        facts = {"provider": self.name, "endpoint": exchange.endpoint, "order": exchange.idempotency_key}
        with traces.span("order", facts=facts) as span:
            outcome = self._inner.send(exchange, gate)
            span.tell(outcome=type(outcome).__name__.lower())
            if isinstance(outcome, Answered):
                tokens = outcome.input_tokens + outcome.output_tokens
                span.tell(calls=len(outcome.results), tokens=tokens, replayed=outcome.replayed)
            return outcome


class TracedVerifyingProvider(TracedProvider):
    """Wraps one that can be asked what became of an order."""

    def __init__(self, inner: Provider, verifying: Verifying) -> None:
        super().__init__(inner)
        self._verifying = verifying

    def verify(self, order: Order) -> Answered | None:
        """See `Verifying.verify`."""
        return self._verifying.verify(order)


def traced(provider: Provider) -> Provider:
    """The provider, with tracing if that is on."""
    if not traces.are_on():
        return provider
    if isinstance(provider, Verifying):
        return TracedVerifyingProvider(provider, provider)
    return TracedProvider(provider)
