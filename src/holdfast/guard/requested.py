"""What becomes of a request for a guarded task."""

from dataclasses import dataclass
from typing import Any

from holdfast.core.records import RequestResult
from holdfast.core.states import Disposition
from holdfast.guard.signals import Duplicate


@dataclass(frozen=True, slots=True)
class Requested:
    """What became of a request, and the run that it concerns: the new one, or the one in its way.

    `result` is Celery's AsyncResult of that run.
    """

    disposition: Disposition
    reason: str
    run_id: str | None
    generation: int
    result: Any

    @classmethod
    def of(cls, answer: RequestResult, result: Any) -> "Requested":
        """The answer of the store, for the caller."""
        return cls(answer.disposition, answer.reason, answer.run_id, answer.generation, result)

    @property
    def created(self) -> bool:
        """True if the request made a new run."""
        return self.disposition in {Disposition.ACCEPTED, Disposition.SUPERSEDING, Disposition.TAKEOVER}

    def require(self) -> "Requested":
        """Itself if it made a new run; Duplicate otherwise, which says what is in its way."""
        if not self.created:
            message = f"the same work was requested before and is not done again ({self.reason})"
            raise Duplicate(message, run_id=self.run_id)
        return self
