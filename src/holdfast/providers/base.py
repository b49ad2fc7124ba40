"""The contract between the ledger and a paid service.

A provider does one thing for the ledger: send an order once and say what the outcome means for money. There
are exactly four outcomes, and every failure of a network or a server is one of them, never an exception:

* `Answered`: the results have arrived and were charged (or replayed under a key, and were not).
* `Refused`: the provider declined and charged nothing.
* `NotSent`: the first byte of the request was never written, so nothing can have been charged.
* `Unknown`: the request was sent, at least in part, and the outcome is unknown. The order is in doubt.

`Refused` and `NotSent` concern *this* exchange only. When an order in doubt is sent again, a refusal of the
second exchange says nothing about what the first one cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Profile:
    """How a provider charges, and its limits.

    `key_retention` and `deadline` are seconds; `max_inputs` and `max_tokens` bound one order; `uncharged` are
    the statuses, such as 503, for which this provider is known never to charge. `in_process`: it
    runs in this process and needs no connection, so an order is intended and marked sent in one step.
    `unit_tokens`: it reads documents; the tokens to expect of a page, in and out, if it charges by tokens.
    """

    name: str
    honours_keys: bool
    key_retention: float
    max_inputs: int
    max_tokens: int
    deadline: float
    uncharged: frozenset[int] = frozenset()
    in_process: bool = False
    unit_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """One attempt to send an order: exactly these bytes, under this key.

    Times are by the `boot_time` clock: no first byte after `send_by`, no waiting after `deadline`.
    """

    endpoint: str
    body: bytes = field(repr=False)
    idempotency_key: str
    send_by: float
    deadline: float
    # Called with each piece of a streamed answer as it arrives; must neither wait nor raise.
    hear: Callable[[str], None] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """A complete answer: one result per input, in the order of the inputs.

    `replayed` is true if the provider repeated the stored answer of a key and charged nothing. `units` are
    what it bills besides tokens: searches of a reranker, pages of a parser; None if that is not known.
    `is_estimated` is true if the provider has not named the tokens.
    """

    results: tuple[bytes, ...] = field(repr=False)
    input_tokens: int
    output_tokens: int
    replayed: bool
    units: int | None = 0
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider declined this exchange and did not charge for it.

    `code` is one of `rate_limited`, `unavailable` (a status the profile calls uncharged), `auth`, `quota`,
    `rejected`. `permanent` means that the same order will be refused until someone changes something.
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
    """Sending was at least begun, and whether it was charged is unknown.

    With a `code` another try would end alike: the work that needs the order fails with it, and the order
    stays in doubt until the work is requested again.
    """

    reason: str
    status: int | None
    code: str = ""


Outcome: TypeAlias = Answered | Refused | NotSent | Unknown


class Profiled:
    """Base of providers that have a profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    @property
    def name(self) -> str:
        """The profile's name."""
        return self._profile.name

    @property
    def profile(self) -> Profile:
        """How this provider charges."""
        return self._profile


def free(name: str, max_inputs: int) -> Profile:
    """The profile of a provider in this process. It charges nothing, so resending is always safe."""
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
    """A paid service. Thread-safe; after a fork the child opens its own connections."""

    @property
    def name(self) -> str:
        """The provider's name in content keys, bills and metrics."""

    @property
    def profile(self) -> Profile:
        """How this provider charges."""

    def encode(self, endpoint: str, model: str, params: Mapping[str, object], inputs: Sequence[str]) -> bytes:
        """Return the exact body of an order, the same bytes for the same arguments.

        Raises ValueError, before anything is spent, for an order that cannot be sent.
        """

    def send(self, exchange: Exchange, gate: Callable[[], bool]) -> Outcome:
        """Send the exchange at most once and return the outcome; never raises for network or server errors.

        `gate` is called at most once, when a connection is ready and before the first byte: False withholds
        the request. What `gate` itself raises is passed on, with nothing sent.
        """

    def count_tokens(self, text: str) -> int:
        """Return an estimate of the tokens of `text`: at least 1, and rather too high than too low."""

    def close(self) -> None:
        """Close idle connections; exchanges still under way end as `Unknown`."""
