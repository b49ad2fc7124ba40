"""Who asks for work, and how urgent it is."""

from dataclasses import dataclass

from holdfast.core.states import Lane


@dataclass(frozen=True, slots=True)
class RequestContext:
    """How urgent a request is, who makes it, and what each run may spend at most, in nano-dollars."""

    tenant: str = "default"
    actor: str = ""
    lane: str = Lane.BULK
    priority: int = 5
    max_cost: int | None = None
