"""Idempotency keys as honoured by a provider."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.clock import boot_time


class KeyReusedError(Exception):
    """The key was used before with another body."""


@dataclass(slots=True)
class Slot:
    """The state of a key; `answer` is stored with the charge, whatever the client receives."""

    digest: bytes
    since: float
    answer: bytes | None = None
    busy: bool = True


class MeterKeys:
    """The keys within their retention: each is served by one exchange at a time."""

    def __init__(self, retention: float) -> None:
        self.retention = retention
        self._changed = threading.Condition()
        self._slots: dict[str, Slot] = {}
        self._closed = False

    @contextmanager
    def taken(self, key: str, body: bytes) -> Iterator[Slot]:
        """Hold the key's slot; a second exchange of a key waits until the first has ended.

        A slot without an answer (nothing was charged) is dropped. Raises `KeyReusedError` for a key that was
        used with another body.
        """
        digest = hashlib.sha256(body).digest()
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._busy(key))
            slot = self._slots.get(key)
            if slot is None or boot_time() - slot.since > self.retention:
                slot = self._slots[key] = Slot(digest, boot_time())
            if slot.digest != digest:
                raise KeyReusedError
            slot.busy = True
        try:
            yield slot
        finally:
            with self._changed:
                slot.busy = False
                if slot.answer is None:
                    self._slots.pop(key, None)
                self._changed.notify_all()

    def _busy(self, key: str) -> bool:
        slot = self._slots.get(key)
        return slot is not None and slot.busy

    def clear(self) -> None:
        """Drop the keys that no exchange is using."""
        with self._changed:
            self._slots = {key: slot for key, slot in self._slots.items() if slot.busy}

    def close(self) -> None:
        """Release everyone who waits for a key."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
