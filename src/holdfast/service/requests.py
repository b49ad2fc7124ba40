"""The context of a request for work: who asks, and how urgent it is."""

from dataclasses import dataclass

from holdfast.core import filters
from holdfast.core.filters import Filter
from holdfast.core.states import Lane


@dataclass(frozen=True, slots=True)
class RequestContext:
    """How urgent a request is, who makes it, and what each run may spend at most, in nano-dollars.

    `restriction` is the filter of the caller's key, in JSON.
    """

    tenant: str = "default"
    actor: str = ""
    lane: str = Lane.BULK
    priority: int = 5
    max_cost: int | None = None
    restriction: str = ""

    @property
    def only(self) -> Filter | None:
        """The filter that documents must pass before and after the request; None for none."""
        return filters.restriction(self.restriction) if self.restriction else None
