"""A pool of parsers for a process that serves several tenants, so that one text does not block others.

Each parser has its own child, started at first use. A tenant uses at most its share of them at a time, and
few of its callers may wait; further ones are rejected at once, because a waiting caller holds a thread.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.core.errors import HoldfastError
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.records import ParseLimits

MEASURES_WITHIN = 5.0


class ParsersBusyError(HoldfastError):
    """All parsers that the tenant may use are busy."""

    code = "estimate_busy"


@dataclass(frozen=True, slots=True)
class Shares:
    """The number of parsers, how many a tenant may use at a time, and how many of its callers may wait."""

    parsers: int = 4
    tenant: int = 2
    waiting: int = 4


class Parsers:
    """A pool of parsers, each lent to one caller at a time."""

    def __init__(
        self, limits: ParseLimits | None = None, shares: Shares | None = None, own: Sequence[str] = ()
    ) -> None:
        self._shares = shares or Shares()
        self._all = [Parser(limits, in_child=True, own=own) for _ in range(self._shares.parsers)]
        self._free = list(self._all)
        self._lent: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._measures: tuple[str, ...] | None = None
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def lent(self, tenant: str, until: float | None = None) -> Iterator[Parser]:
        """A parser for one caller; ParsersBusyError if none is free by `until` on the monotonic clock."""
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
        """The sandbox measures in force on this machine, in plain words; determined once."""
        if self._measures is None:
            try:
                with self.lent("", time.monotonic() + MEASURES_WITHIN) as parser:
                    self._measures = parser.measures()
            except HoldfastError as error:
                return (f"not known: {error.message}",)
        return self._measures

    def close(self) -> None:
        """End every child; the next text starts another."""
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
    return ParsersBusyError("too many texts are being estimated at the moment; try again shortly")
