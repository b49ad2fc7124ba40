"""What the slices of a job say of themselves, and why a job came to nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.core.errors import WorkError
from holdfast.kinds import model_calls
from holdfast.store.base.database import Tx
from holdfast.store.protocol import slices

T = TypeVar("T")

COUNTS = ("asked", "found", "failed", "unusable", "refused", "replaced", "duplicates")


@dataclass(slots=True)
class SliceTally:
    """Counts of one slice, and the first thing that went wrong.

    `unusable` are answers that could not be read, `refused` inputs that the provider rejected, `replaced`
    documents that had another generation by then, `duplicates` results that were there already.
    """

    unusable: int = 0
    refused: int = 0
    replaced: int = 0
    duplicates: int = 0
    failed: int = 0
    error: WorkError | None = None

    def read(self, answer: bytes | WorkError, reader: Callable[[bytes], T]) -> T | None:
        """What `reader` makes of an answer; None, counted, where there is none that can be read."""
        try:
            if isinstance(answer, WorkError):
                raise answer
            return reader(answer)
        except WorkError as error:
            if error.code not in model_calls.OF_ONE:
                raise
            self.note(error)
            return None

    def note(self, error: WorkError) -> None:
        """The error is counted."""
        if error.code == "provider_rejected":
            self.refused += 1
        else:
            self.unusable += 1
        self.error = self.error or error

    def as_dict(self) -> dict[str, Any]:
        """The counts that are not zero, as the result of a slice."""
        counts = {name: getattr(self, name) for name in COUNTS if getattr(self, name, 0)}
        if self.error is not None:
            counts["error"] = {"code": self.error.code, "message": self.error.message[:500]}
        return counts


def summed(results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The counts of all slices together."""
    return {name: sum(int(each.get(name, 0)) for each in results) for name in COUNTS}


def why_nothing(tx: Tx, run_id: str, otherwise: str) -> WorkError:
    """The error of a job that has no result: what went wrong first, or that there was nothing to be found."""
    results = [each.result for each in slices.done(tx, run_id)]
    for each in results:
        if isinstance(error := each.get("error"), dict):
            return WorkError(str(error["message"]), code=str(error["code"]))
    if any(each.get("replaced") for each in results):
        message = "the documents were replaced or deleted before they were read; request the job again"
        return WorkError(message, code="documents_changed")
    return WorkError(otherwise, code="nothing_found")
