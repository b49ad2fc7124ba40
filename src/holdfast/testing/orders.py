"""Orders for tests that use a provider without a ledger."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from holdfast.clock import boot_time
from holdfast.providers.base import Exchange, Outcome, Provider

_serial = itertools.count(1)


def yes() -> bool:
    """A gate that lets everything through."""
    return True


def exchange(
    provider: Provider,
    *inputs: str,
    endpoint: str = "embeddings",
    model: str = "small",
    key: str | None = None,
    send_within: float = 10.0,
    within: float = 10.0,
    **params: object,
) -> Exchange:
    """Return an order for the inputs, with this many seconds to start and to finish."""
    now = boot_time()
    return Exchange(
        endpoint=endpoint,
        body=provider.encode(endpoint, model, params, inputs),
        idempotency_key=key or f"test-{next(_serial)}",
        send_by=now + send_within,
        deadline=now + within,
    )


def embed(
    provider: Provider,
    *inputs: str,
    gate: Callable[[], bool] = yes,
    key: str | None = None,
    within: float = 10.0,
    **params: Any,
) -> Outcome:
    """Send an order for embeddings, and return the outcome."""
    return provider.send(exchange(provider, *inputs, key=key, within=within, **params), gate)


def chat(provider: Provider, prompt: str, *, within: float = 10.0, **params: Any) -> Outcome:
    """Send an order for one completion, and return the outcome."""
    order = exchange(provider, prompt, endpoint="chat/completions", within=within, **params)
    return provider.send(order, yes)
