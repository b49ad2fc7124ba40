"""A provider whose exchanges are spans: `order`, below the task that pays or the request that asks."""

from collections.abc import Callable, Mapping, Sequence

from holdfast.providers.base import Answered, Exchange, Outcome, Profile, Provider
from holdfast.telemetry import traces


class TracedProvider:
    """Another provider, traced. Neither body nor key is told."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """See `Provider.name`."""
        return self._inner.name

    @property
    def profile(self) -> Profile:
        """See `Provider.profile`."""
        return self._inner.profile

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """See `Provider.encode`."""
        return self._inner.encode(endpoint, model, params, inputs)

    def count_tokens(self, text: str) -> int:
        """See `Provider.count_tokens`."""
        return self._inner.count_tokens(text)

    def close(self) -> None:
        """See `Provider.close`."""
        self._inner.close()

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
