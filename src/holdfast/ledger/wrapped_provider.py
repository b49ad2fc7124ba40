"""A provider that wraps another and delegates everything to it."""

from collections.abc import Mapping, Sequence

from holdfast.providers.base import Profile, Provider


class WrappedProvider:
    """Wraps a provider under its own name; subclasses override `send`."""

    def __init__(self, inner: Provider) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        """See `Provider.name`."""
        return self._inner.name

    @property
    def address(self) -> str:
        """Host and port of its server; its name if it has none."""
        return str(getattr(self._inner, "address", self._inner.name))

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
