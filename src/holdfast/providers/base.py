"""The contract between the ledger and a paid service.

A provider does one thing for the ledger: carry an order over the network once and say what that means for
money. There are exactly four answers, and every failure of a network or a server is one of them, never an
exception:

* `Answered`: the results are here and were charged (or replayed under a key, and were not).
* `Refused`: the provider said no and took nothing.
* `NotSent`: the first byte of the request was never written, so nothing can have been taken.
* `Unknown`: the request, or a part of it, left this machine and the outcome is hidden. The order is in doubt.

`Refused` and `NotSent` speak of *this* exchange only. When an order in doubt is sent again, a refusal of the
second exchange says nothing about what the first one cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a provider's behaviour with money.

    `key_retention` and `deadline` are seconds; `max_inputs` and `max_tokens` bound one order; `uncharged` are
    the statuses, such as 503, for which this provider is known never to charge. `in_process`: it
    runs in this process and needs no connection, so an order is intended and marked sent in one step.
    """

    name: str
    honours_keys: bool
    key_retention: float
    max_inputs: int
    max_tokens: int
    deadline: float
    uncharged: frozenset[int] = frozenset()
    in_process: bool = False


@dataclass(frozen=True, slots=True)
class Exchange:
    """One order on its way out: exactly these bytes, under this key, within these times of the `boot_time`
    clock.

    The first byte is not written after `send_by`; nothing is waited for after `deadline`.
    """

    endpoint: str
    body: bytes = field(repr=False)
    idempotency_key: str
    send_by: float
    deadline: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The provider answered in full; one result per input, in the order of the inputs.

    `replayed` is true when the provider said that it repeated the stored answer of a key and charged nothing.
    """

    results: tuple[bytes, ...] = field(repr=False)
    input_tokens: int
    output_tokens: int
    replayed: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider declined this exchange and did not charge for it.

    `code` is one of `rate_limited`, `unavailable` (a status the profile calls uncharged), `auth`, `quota`,
    `rejected`. `permanent` means that the same order would be refused again until a person changes something.
    """

    status: int
    code: str
    message: str
    retry_after: float | None
    permanent: bool


@dataclass(frozen=True, slots=True)
class NotSent:
    """No byte of the request was written, so nothing was charged."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The request was at least begun, and whether it was charged cannot be known from here."""

    reason: str
    status: int | None


Outcome: TypeAlias = Answered | Refused | NotSent | Unknown


class Profiled:
    """What every provider says of itself, by its profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    @property
    def name(self) -> str:
        """The profile's name."""
        return self._profile.name

    @property
    def profile(self) -> Profile:
        """What this provider does with money."""
        return self._profile


def free(name: str, max_inputs: int) -> Profile:
    """The profile of a provider in this process. It charges nothing: sending again is never too late."""
    return Profile(
        name=name,
        honours_keys=True,
        key_retention=365 * 86_400.0,
        max_inputs=max_inputs,
        max_tokens=1_000_000,
        deadline=60.0,
        in_process=True,
    )


class Provider(Protocol):
    """A paid service. Safe to share between threads; after a fork the child opens connections of its own."""

    @property
    def name(self) -> str:
        """The provider's name as it stands in content keys, bills and metrics."""

    @property
    def profile(self) -> Profile:
        """What this provider does with money."""

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return the exact body of an order, the same bytes for the same arguments.

        Raises ValueError, before anything is spent, for what could not be sent as asked.
        """

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Send the exchange at most once and return what came of it; never raises for a network or a server.

        `gate` is called at most once, when a connection is ready and before the first byte: False withholds
        the request. What `gate` itself raises is passed on, with nothing sent.
        """

    def count_tokens(self, text: str) -> int:
        """Return an estimate of the tokens of `text`, at least 1 and rather too many than too few."""

    def close(self) -> None:
        """Close idle connections; exchanges still under way end as `Unknown`."""
