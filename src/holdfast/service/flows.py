"""Flows: check a file, apply a version, list them, and what a change would do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.errors import BadRequestError, ConflictError, NotFoundError
from holdfast.engine.engine import Engine
from holdfast.kinds.edited_chunks import FLOW
from holdfast.kinds.flows import checker, differences, index_steps, library
from holdfast.kinds.flows.differences import SAME, StepChange
from holdfast.kinds.flows.index_steps import FlowSetup
from holdfast.kinds.flows.library import FlowLibrary
from holdfast.kinds.flows.runner import MOST_ERRORS
from holdfast.kinds.flows.steps import Flow
from holdfast.service.requests import RequestContext
from holdfast.store.library import flows
from holdfast.store.library.documents import Document
from holdfast.store.library.flows import StoredFlow

# Of the schemas that a flow names, all together.
MOST_FILES = 20
MOST_FILE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class AppliedFlow:
    """A version as it is stored; not `created` if it was there already."""

    stored: StoredFlow
    flow: Flow
    created: bool


@dataclass(slots=True)
class DocumentStep:
    """What became of a step in all slices of a published version. `paid` is in nano-dollars.

    A slice that was taken over from an earlier version counts as it was then.
    """

    number: int
    kind: str
    name: str
    per: str
    items: int = 0
    left_out: int = 0
    failed: int = 0
    seconds: float = 0.0
    paid_calls: int = 0
    reused_calls: int = 0
    paid: int = 0
    stand_in: bool = False
    errors: list[str] = field(default_factory=list)
    output: str = ""

    def add(self, report: Mapping[str, Any]) -> None:
        """The report of one slice counts, too."""
        for name in ("items", "left_out", "failed", "seconds", "paid_calls", "reused_calls", "paid"):
            setattr(self, name, getattr(self, name) + report.get(name, 0))
        self.stand_in = self.stand_in or bool(report.get("stand_in"))
        self.errors = [*self.errors, *report.get("errors", ())][:MOST_ERRORS]
        self.output = self.output or str(report.get("output") or "")


@dataclass(frozen=True, slots=True)
class DocumentSteps:
    """The flow that a published version was made by, and its steps in order; no flow has no steps."""

    flow: str | None
    steps: Sequence[DocumentStep] = ()


class Flows:
    """The flows of an installation, as one process sees them."""

    def __init__(self, engine: Engine, setup: FlowSetup) -> None:
        self._db = engine.db
        self.setup = setup
        self.library = FlowLibrary(engine.db)

    def check(self, source: str, files: Mapping[str, str] | None = None) -> Flow:
        """The flow that the text describes; FlowError says all that is wrong with it."""
        files = files or {}
        size = sum(len(text.encode("utf-8", "replace")) for text in files.values())
        if len(files) > MOST_FILES or size > MOST_FILE_BYTES:
            message = f"a flow names at most {MOST_FILES} files of {MOST_FILE_BYTES:,} bytes together"
            raise BadRequestError(message, code="bad_flow")
        return checker.read(source, files, self.setup.functions.registered)

    def apply(self, wish: RequestContext, source: str, files: Mapping[str, str] | None = None) -> AppliedFlow:
        """The version is stored for good; ConflictError if another has its number, with what differs."""
        flow = self.check(source, files)
        draft = StoredFlow(flow.name, flow.version, source, flow.files, flow.digest, wish.actor, 0.0)
        known = flows.one(self._db, wish.tenant, flow.name, flow.version)
        stored = known or flows.put(self._db, wish.tenant, draft)
        if stored.digest != flow.digest:
            changed = differences.between(library.of_stored(stored), flow)
            what = "; ".join(each.sentence for each in changed if each.change != SAME)[:1000]
            newest = flows.latest(self._db, wish.tenant, flow.name) or flow.version
            message = (
                f"{flow.id} was applied before with other steps, and a version never changes ({what}); "
                f"use version: {newest + 1}"
            )
            raise ConflictError(message, code="flow_exists")
        return AppliedFlow(stored, flow, known is None)

    def all(self, tenant: str) -> Sequence[StoredFlow]:
        """The flows of a tenant by name and version."""
        return flows.listed(self._db, tenant)

    def get(self, tenant: str, flow_id: str) -> StoredFlow:
        """A version of a flow; without one the newest. NotFoundError when there is none."""
        name, at, version = flow_id.partition("@")
        stored = None
        if checker.is_flow_name(name) and (not at or library.is_version(version)):
            number = int(version) if at else flows.latest(self._db, tenant, name)
            stored = None if number is None else flows.one(self._db, tenant, name, number)
        if stored is None:
            raise NotFoundError(f"there is no flow {flow_id!r:.100}", code="unknown_flow")
        return stored

    def of_document(self, document: Document) -> DocumentSteps:
        """The steps that made the published version of a document, with what each took, cost and made."""
        if not document.visible or document.head_id is None:
            return DocumentSteps(None)
        results = [result[FLOW] for result in flows.results(self._db, document.head_id) if FLOW in result]
        steps: dict[int, DocumentStep] = {}
        for report in (each for result in results for each in result.get(index_steps.STEPS, ())):
            names = {name: report[name] for name in ("number", "kind", "name", "per")}
            steps.setdefault(report["number"], DocumentStep(**names)).add(report)
        listed = [steps[number] for number in sorted(steps)]
        return DocumentSteps(str(results[0]["id"]) if results else None, listed)

    def named_by(self, tenant: str, options: Mapping[str, Any]) -> Flow | None:
        """The flow that options name, if they name one."""
        return self.library.find(tenant, str(options[FLOW])) if options.get(FLOW) else None

    def check_option(self, tenant: str, options: Mapping[str, Any] | None) -> None:
        """Return if the flow that the options name can be carried out here; otherwise an error says why."""
        flow_id = (options or {}).get(FLOW)
        if not flow_id:
            return
        flow = self.library.get(tenant, str(flow_id))
        for step in flow.of_kind("enrich", "extract"):
            index_steps.model_of(self.setup.supplies, step)
        for step in flow.of_kind("python"):
            if step.params["call"] not in self.setup.functions.registered:
                message = f"step {step.name}: HOLDFAST_FLOW_FUNCTIONS does not name {step.params['call']}"
                raise BadRequestError(message, code="unknown_function")

    def split_as(self, tenant: str, document: Document, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of a run of the document, as the flow changed them that it names."""
        flow = self.named_by(tenant, options)
        if flow is None:
            return options
        return {**options, **index_steps.split_options(flow, index_steps.stored_fields(document))}

    def changes(self, tenant: str, flow: Flow, options: Mapping[str, Any]) -> list[StepChange]:
        """What becomes of every step if a collection with these options takes this flow."""
        return differences.between(self.named_by(tenant, options), flow)
