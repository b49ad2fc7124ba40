"""How a kind that derives something from a collection, phase by phase, is registered and requested."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.core.records import Claim, Slice
from holdfast.engine.job_specs import EstimatedCalls, JobEstimate, JobSpec, SearchSource
from holdfast.engine.kinds import Finish, Kind
from holdfast.engine.work import Work
from holdfast.ledger.pay import Call
from holdfast.store.base.database import Tx

NOTES: Mapping[str, Any] = {
    "title": "Further instructions",
    "type": "string",
    "maxLength": 4000,
    "default": "",
}


class PhasedWork(Protocol):
    """The work of such a kind: documents first, then what is above them, until nothing is left to do."""

    def plan(self, work: Work) -> list[Slice]:
        """The slices of the first phase."""

    def plan_next(self, work: Work) -> list[Slice]:
        """The slices of the next phase; none at the end."""

    def run(self, work: Work) -> Finish:
        """One slice, ready to be staged."""

    def publish(self, tx: Tx, claim: Claim) -> None:
        """What is left to write in the transaction that publishes; raises if there is nothing to show."""


def with_notes(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters as they are frozen: blanks around the notes are no other request."""
    return {**params, "notes": params["notes"].strip()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedKind:
    """What is particular to such a kind. `phase_share` is what part of the work left a phase usually does."""

    name: str
    title: str
    description: str
    version: int
    prompts: int
    parameters: Mapping[str, Any]
    result: Mapping[str, Any]
    stages: tuple[str, ...]
    estimate: Callable[[JobEstimate], Sequence[Call] | EstimatedCalls]
    phase_share: float
    check: Callable[[dict[str, Any]], dict[str, Any]] = with_notes
    search: SearchSource | None = None

    def kind(self, worker: PhasedWork) -> Kind:
        """The kind to register: it asks a model, and pays for what changed when it is requested again."""
        job = JobSpec(
            title=self.title,
            description=self.description,
            parameters=self.parameters,
            check=self.check,
            asks_model=True,
            prompts=self.prompts,
            stages=self.stages,
            estimate_job=self.estimate,
            result=self.result,
            keepable=True,
        )
        return Kind(
            self.name,
            worker.run,
            plan=worker.plan,
            plan_next=worker.plan_next,
            publish=worker.publish,
            version=self.version,
            job=job,
            search=self.search,
            phase_share=self.phase_share,
        )
