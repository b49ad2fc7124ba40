"""Several parsers for a process that serves several tenants: one text holds up nobody else.

Each parser has a child of its own, which is started when it is first needed. A tenant has at most its share
of them at a time, and few of its callers wait for one; whoever comes beyond that is told so at once, because
a caller who waits holds a thread.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.core.errors import HoldfastError
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import ParseLimits

MEASURES_WITHIN = 5.0


class ParsersBusyError(HoldfastError):
    """Every parser that the tenant may use is in use."""

    code = "estimate_busy"


@dataclass(frozen=True, slots=True)
class Shares:
    """How many parsers there are, how many a tenant has at a time, and how many of its callers wait."""

    parsers: int = 4
    tenant: int = 2
    waiting: int = 4


class Parsers:
    """Parsers that are lent, one caller at a time each."""

    def __init__(self, limits: ParseLimits | None = None, shares: Shares | None = None) -> None:
        self._shares = shares or Shares()
        self._all = [Parser(limits, in_child=True) for _ in range(self._shares.parsers)]
        self._free = list(self._all)
        self._lent: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._measures: tuple[str, ...] | None = None
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def lent(self, tenant: str, until: float | None = None) -> Iterator[Parser]:
        """A parser for one caller, had by `until` on the monotonic clock; otherwise ParsersBusyError."""
        parser = self._take(tenant, until)
        try:
            yield parser
        finally:
            with self._changed:
                self._free.append(parser)
                self._lent[tenant] -= 1
                self._forget(tenant)
                self._changed.notify_all()

    def measures(self) -> tuple[str, ...]:
        """What keeps the children of this machine from doing harm, in plain words; found out once."""
        if self._measures is None:
            try:
                with self.lent("", time.monotonic() + MEASURES_WITHIN) as parser:
                    self._measures = parser.measures()
            except HoldfastError as error:
                return (f"not known: {error.message}",)
        return self._measures

    def close(self) -> None:
        """Every child has ended; the next text starts another."""
        for parser in self._all:
            parser.close()

    def _take(self, tenant: str, until: float | None) -> Parser:
        with self._changed:
            if not self._may(tenant):
                if self._waiting[tenant] >= self._shares.waiting:
                    raise _busy()
                self._wait(tenant, until)
            self._lent[tenant] += 1
            return self._free.pop()

    def _may(self, tenant: str) -> bool:
        return bool(self._free) and self._lent[tenant] < self._shares.tenant

    def _wait(self, tenant: str, until: float | None) -> None:
        self._waiting[tenant] += 1
        try:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not self._changed.wait_for(lambda: self._may(tenant), left):
                raise _busy()
        finally:
            self._waiting[tenant] -= 1
            self._forget(tenant)

    def _forget(self, tenant: str) -> None:
        for counter in (self._lent, self._waiting):
            if not counter[tenant]:
                del counter[tenant]


def _busy() -> ParsersBusyError:
    return ParsersBusyError("as many texts as may be at a time are being estimated; ask again in a moment")
