"""Flows: a file is checked, estimated, compared and applied; versions are listed and read."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Path
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from holdfast.api import parameters, routing, schemas_documents
from holdfast.api.access import OwnDocument, PathDocument, Reader, Writer
from holdfast.api.collections import wish
from holdfast.api.errors import BESIDE, FaultShape, Problem
from holdfast.api.limits import BodyKind
from holdfast.api.money import EstimateShape
from holdfast.api.parameters import Services
from holdfast.api.schemas_documents import Shape, dollars, nano_dollars
from holdfast.bootstrap import AppServices
from holdfast.kinds.flows.faults import FlowError
from holdfast.kinds.flows.steps import CHUNK, DOCUMENT, Flow
from holdfast.ledger.estimates import Forecast
from holdfast.service import estimates
from holdfast.service.estimates import Estimate
from holdfast.service.flow_trials import MOST_CHUNKS, FlowTrial, TrialRequest, TrialStep
from holdfast.service.records import StoredFlow
from holdfast.web.slow_requests import Pool

router = routing.router("flows")

Source = Annotated[str, Field(max_length=1_000_000)]
FlowId = Annotated[str, Path(description="`name@version`, or a name for its newest version.")]


class FlowSource(Shape):
    """The text of a flow, YAML or JSON, and the schemas that it names, by file name."""

    source: Source
    files: Annotated[dict[str, Source], Field(default_factory=dict, max_length=20)]


class FlowForCollection(FlowSource):
    """A flow that a collection might take."""

    collection: Annotated[str, Field(max_length=64)]


class StepShape(Shape):
    """A step with all its parameters, as a file would say it. `name` is the field that it makes."""

    number: int
    kind: str
    name: str
    line: int
    step: dict[str, Any]


class FlowResponse(Shape):
    """A version of a flow, which never changes. `id` is what the option `flow` of a collection names."""

    id: str
    flow: str
    version: int
    digest: str
    applied_by: str
    applied_at: datetime | None
    source: str
    files: dict[str, str]

    @classmethod
    def of(cls, stored: StoredFlow) -> "FlowResponse":
        """The version as it is shown."""
        return cls(
            id=stored.id,
            flow=stored.name,
            version=stored.version,
            digest=stored.digest,
            applied_by=stored.actor,
            applied_at=schemas_documents.moment(stored.created_at),
            source=stored.source,
            files=dict(stored.files),
        )


class FlowList(Shape):
    """The flows of the tenant by name and version, at most 500."""

    flows: list[FlowResponse]


class CheckedFlow(Shape):
    """What was found out about a file: its steps if it is valid, and all that is wrong if it is not."""

    ok: bool
    id: str | None
    steps: list[StepShape]
    faults: list[FaultShape]

    @classmethod
    def of(cls, flow: Flow) -> "CheckedFlow":
        """A flow that is valid."""
        steps = [
            StepShape(
                number=step.number, kind=step.kind, name=step.name, line=step.line, step=step.described()
            )
            for step in flow.steps
        ]
        return cls(ok=True, id=flow.id, steps=steps, faults=[])


class StepCost(Shape):
    """What a step would cost: `calls` to be paid, `reused_calls` that are known. `cost` null: no price."""

    name: str
    calls: int
    reused_calls: int
    tokens: int
    cost: float | None

    @classmethod
    def of(cls, name: str, forecast: Forecast) -> "StepCost":
        """The cost of one step."""
        return cls(
            name=name,
            calls=forecast.calls,
            reused_calls=forecast.known_calls,
            tokens=forecast.tokens,
            cost=None if forecast.price is None else dollars(forecast.price),
        )


class FlowEstimate(Shape):
    """What it would cost if the collection took the flow: all of it, and each step that pays."""

    estimate: EstimateShape
    steps: list[StepCost]

    @classmethod
    def of(cls, estimate: Estimate, collection: str, flow: Flow) -> "FlowEstimate":
        """The estimate as it is shown; its fingerprint is that of setting the option `flow`."""
        fingerprint = estimates.fingerprint(collection, options={"flow": flow.id})
        return cls(
            estimate=EstimateShape.of(estimate, fingerprint),
            steps=[StepCost.of(name, forecast) for name, forecast in estimate.steps.items()],
        )


class StepChangeShape(Shape):
    """What becomes of a step: `same`, `changed`, `new`, `removed`, or `reads changed`."""

    kind: str
    name: str
    change: str
    details: list[str]


class FlowDiff(FlowEstimate):
    """What would be different, against the flow that the collection has now, and what that would cost."""

    against: str | None
    changes: list[StepChangeShape]


@router.post(
    "/flows",
    status_code=201,
    response_model=FlowResponse,
    responses={
        200: {"model": FlowResponse, "description": "This version was applied before, with the same steps."},
        409: {"model": Problem, "description": "This version was applied before, with other steps."},
    },
)
@routing.takes(BodyKind.TEXT)
def apply_flow(services: Services, caller: Writer, body: FlowSource) -> Response:
    """Apply a version of a flow for good; collections take it by their option `flow`."""
    applied = services.flows.apply(wish(caller), body.source, body.files)
    shown = FlowResponse.of(applied.stored).model_dump_json()
    return Response(shown, 201 if applied.created else 200, media_type=JSONResponse.media_type)


class DocumentStepShape(Shape):
    """A step of the published version. `left_out`: its condition did not hold; `output` is the first one."""

    number: int
    kind: str
    name: str
    per: str
    items: int
    left_out: int
    failed: int
    seconds: float
    paid_calls: int
    reused_calls: int
    cost: float
    stand_in: bool
    errors: list[str]
    output: str


class DocumentStepList(Shape):
    """The flow that the published version was made by, null for the built-in index, and its steps."""

    generation: int
    flow: str | None
    steps: list[DocumentStepShape]


@router.get("/documents/{document_id}/steps", responses=BESIDE)
def document_steps(services: Services, document: PathDocument) -> DocumentStepList:
    """List the steps of the flow that made the published version: time, cost and output of each."""
    history = services.flows.of_document(document)
    names = [name for name in DocumentStepShape.model_fields if name != "cost"]
    steps = [
        DocumentStepShape(cost=dollars(each.paid), **{name: getattr(each, name) for name in names})
        for each in history.steps
    ]
    generation = document.published_generation if document.visible else 0
    return DocumentStepList(generation=generation, flow=history.flow, steps=steps)


@router.get("/flows")
def all_flows(services: Services, caller: Reader) -> FlowList:
    """List the flows, by name and version."""
    return FlowList(flows=[FlowResponse.of(each) for each in services.flows.all(caller.tenant)])


@router.post("/flows/check")
@routing.takes(BodyKind.TEXT)
def check_flow(services: Services, caller: Reader, body: FlowSource) -> CheckedFlow:  # noqa: ARG001
    """Check a file: all that is wrong, with line, column and the nearest name. Nothing is stored."""
    try:
        return CheckedFlow.of(services.flows.check(body.source, body.files))
    except FlowError as error:
        return CheckedFlow(ok=False, id=None, steps=[], faults=[FaultShape.of(each) for each in error.faults])


def _estimated(services: AppServices, tenant: str, body: FlowForCollection) -> tuple[Flow, str, Estimate]:
    flow = services.flows.check(body.source, body.files)
    collection = parameters.valid_id(body.collection)
    estimator = services.estimates(services.settings.estimate_seconds)
    return flow, collection, estimator.of_collection(tenant, collection, flow=flow)


@router.post("/flows/estimate")
@routing.takes(BodyKind.TEXT)
@routing.waits(Pool.ESTIMATES)
def estimate_flow(services: Services, caller: Reader, body: FlowForCollection) -> FlowEstimate:
    """Say what it would cost if the collection took this flow; nothing is paid, and nothing is changed."""
    flow, collection, estimate = _estimated(services, caller.tenant, body)
    return FlowEstimate.of(estimate, collection, flow)


@router.post("/flows/diff")
@routing.takes(BodyKind.TEXT)
@routing.waits(Pool.ESTIMATES)
def diff_flow(services: Services, caller: Reader, body: FlowForCollection) -> FlowDiff:
    """Say what would become of each step if the collection took this flow, and what that would cost."""
    flow, collection, estimate = _estimated(services, caller.tenant, body)
    options = services.collections.get(caller.tenant, collection).options
    changes = services.flows.changes(caller.tenant, flow, options)
    shown = [
        StepChangeShape(kind=each.kind, name=each.name, change=each.change, details=list(each.details))
        for each in changes
    ]
    costs = FlowEstimate.of(estimate, collection, flow)
    against = options.get("flow")
    return FlowDiff(
        estimate=costs.estimate,
        steps=costs.steps,
        against=None if not against else str(against),
        changes=shown,
    )


class DryRunBody(FlowSource):
    """A flow, and on how many chunks it is tried. `max_cost` is in US dollars."""

    chunks: Annotated[int, Field(ge=1, le=MOST_CHUNKS, description="So many chunks from its beginning.")] = 3
    pay: Annotated[bool, Field(description="False: show only what was paid for before.")] = True
    max_cost: Annotated[float | None, Field(ge=0, le=1e9)] = None


class DryRunStep(Shape):
    """A step of a dry run. `outputs`: of each chunk that was tried, or of the document; null if unknown.

    `items` and what follows is null for a step that asks no model and calls no function.
    """

    number: int
    kind: str
    name: str
    per: str
    outputs: list[Any]
    items: int | None
    left_out: int | None
    failed: int | None
    seconds: float | None
    paid_calls: int | None
    reused_calls: int | None
    cost: float | None
    stand_in: bool
    errors: list[str]

    @classmethod
    def of(cls, trial: TrialStep) -> "DryRunStep":
        """The step as it is shown."""
        step, report = trial.step, trial.report
        names = ("items", "left_out", "failed", "seconds", "paid_calls", "reused_calls")
        about = {name: None if report is None else getattr(report, name) for name in names}
        if report is not None:
            about["seconds"] = round(report.seconds, 3)
        return cls(
            number=step.number,
            kind=step.kind,
            name=step.name,
            per=step.per if step.makes_field else (DOCUMENT if step.kind == "parse" else CHUNK),
            outputs=list(trial.outputs),
            cost=None if report is None else dollars(report.paid),
            stand_in=report is not None and report.stand_in,
            errors=[] if report is None else report.errors,
            **about,
        )


class DryRunChunk(Shape):
    """A chunk that was tried."""

    position: int
    page: int | None
    text: str


class DryRunResponse(Shape):
    """What every step made of the document; nothing was indexed. `of`: its chunks, null if not all were read.

    `unpaid_calls` were left out because of `pay: false`, and would cost about `unpaid_cost`.
    """

    flow: str
    document: str
    chunks: list[DryRunChunk]
    of: int | None
    steps: list[DryRunStep]
    cost: float | None
    unpaid_calls: int
    unpaid_cost: float | None

    @classmethod
    def of_trial(cls, trial: FlowTrial) -> "DryRunResponse":
        """The dry run as it is shown."""
        unpaid = trial.unpaid
        return cls(
            flow=trial.flow,
            document=trial.document,
            chunks=[
                DryRunChunk(position=at, page=each.page, text=each.text)
                for at, each in enumerate(trial.pieces)
            ],
            of=trial.of,
            steps=[DryRunStep.of(each) for each in trial.steps],
            cost=None if trial.spent.unpriced else dollars(trial.spent.paid),
            unpaid_calls=unpaid.calls,
            unpaid_cost=None if unpaid.price is None else dollars(unpaid.price),
        )


@router.post("/documents/{document_id}/dry-run", responses=BESIDE)
@routing.takes(BodyKind.TEXT)
@routing.waits(Pool.ANSWERS)
def dry_run(services: Services, caller: Reader, document: OwnDocument, body: DryRunBody) -> DryRunResponse:
    """Carry a flow out on the first chunks of one document and show what each step makes. May cost money.

    Nothing is indexed or changed. What is paid for is not paid again by a collection that takes the flow.
    """
    flow = services.flows.check(body.source, body.files)
    request = TrialRequest(flow, document, body.chunks, body.pay, nano_dollars(body.max_cost))
    trials = services.flow_trials(services.settings.estimate_seconds)
    return DryRunResponse.of_trial(trials.run(caller.tenant, request))


@router.get("/flows/{flow_id}")
def one_flow(services: Services, caller: Reader, flow_id: FlowId) -> FlowResponse:
    """Show a version of a flow; without a version the newest."""
    return FlowResponse.of(services.flows.get(caller.tenant, flow_id))
