"""Events of an engine for observers: one frozen record each, for metrics and health."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from holdfast.core.records import Claim


class Ending(StrEnum):
    """How a claim ended."""

    FINISHED = "finished"
    PUBLISHED = "published"
    PLANNED = "planned"
    FAILED = "failed"
    PUT_BACK = "put_back"
    RELEASED = "released"
    OVERRAN = "overran"
    FENCED_OUT = "fenced_out"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A task was claimed. By the host's clock it must end by `hard_at`."""

    claim: Claim
    hard_at: float


@dataclass(frozen=True, slots=True)
class Renewed:
    """A lease renewal was requested, and granted or not."""

    claim: Claim
    granted: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of one claim."""

    claim: Claim
    ending: Ending
    reason: str = ""


Tell = Callable[[Claimed | Renewed | Done], None]
"""It must be quick and must not raise. Renewals are reported from the watchdog's thread."""


def nobody(_happening: Claimed | Renewed | Done) -> None:
    """The default observer: does nothing."""
