"""A provider whose exchanges are spans: `order`, below the paying task or request."""

from collections.abc import Callable

from holdfast.ledger.wrapped_provider import WrappedProvider
from holdfast.providers.base import Answered, Exchange, Outcome
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
