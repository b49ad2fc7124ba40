"""Provider clients by identity, each opened at first use."""

import threading
from collections.abc import Callable, Iterator, Mapping

from holdfast.providers.base import Provider


class Clients(Mapping[str, Provider]):
    """All configured providers. Iterating opens nothing; a look-up opens the client, once."""

    def __init__(self, makers: Mapping[str, Callable[[], Provider]]) -> None:
        self._makers = dict(makers)
        self._opened: dict[str, Provider] = {}
        self._lock = threading.Lock()

    def __getitem__(self, identity: str) -> Provider:
        client = self._opened.get(identity)
        if client is not None:
            return client
        with self._lock:
            if identity not in self._opened:
                self._opened[identity] = self._makers[identity]()
            return self._opened[identity]

    def __contains__(self, identity: object) -> bool:
        return identity in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    @property
    def opened(self) -> list[str]:
        """The identities of open clients."""
        return sorted(self._opened)

    def close(self) -> None:
        """Close all open clients."""
        with self._lock:
            for client in self._opened.values():
                client.close()
            self._opened.clear()
