"""Health, metrics and status.

The API is alive while it responds, and ready while the database does: without a broker or a worker it still
accepts requests, which wait. `/readyz` reports both, but neither makes it fail. Nobody learns here how much
work another tenant has; that needs an operator's key, with the scope `admin`.
"""

from fastapi import Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry, generate_latest

from holdfast.api import routing, schemas_documents, schemas_money
from holdfast.api.access import Admin, Reader
from holdfast.api.errors import BESIDE
from holdfast.api.metrics import Counting
from holdfast.api.parameters import Services
from holdfast.bootstrap import AppServices
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.states import LANE_RANK
from holdfast.service.access import Scope
from holdfast.service.records import LaneCount, Trouble, Usage, WorkerState

router = routing.router("operations")
open_router = routing.router("operations")


class Alive(schemas_documents.Shape):
    """The process answers."""

    alive: bool


class Ready(schemas_documents.Shape):
    """Whether requests are taken, and whether what is needed to carry them out is there."""

    ready: bool
    database: bool
    broker: bool
    workers: bool


class LaneResponse(schemas_documents.Shape):
    """The live runs of the tenant in one lane."""

    lane: str
    queued: int
    running: int


class WorkerCard(schemas_documents.Shape):
    """A worker as it last told of itself."""

    name: str
    state: str
    lanes: list[str]
    processes: int
    busy: int
    silent: float


class Depth(schemas_documents.Shape):
    """How many wake-ups wait at a broker; null when it does not answer."""

    broker: str
    lane: str
    messages: int | None


class LaneLoad(schemas_documents.Shape):
    """The open tasks of all tenants in one lane; `oldest` is how many seconds the oldest has waited."""

    lane: str
    queued: int
    waiting: int
    running: int
    oldest: float


class SweepDuty(schemas_documents.Shape):
    """A duty of the sweep; `lag` is by how many seconds its next success is overdue.

    `succeeded` and `failed` are how many seconds ago that was last noted, null for never. `failures` counts
    those since the last success, and `error` is what the last one said.
    """

    name: str
    every: float
    lag: float
    succeeded: float | None
    failed: float | None
    failures: int
    error: str


class RelayCard(schemas_documents.Shape):
    """A relay, and how many orders it has in flight; `silence` is positive if its lease has expired."""

    name: str
    state: str
    version: str
    carrying: int
    silence: float


class Installation(schemas_documents.Shape):
    """The whole installation, for its operator.

    `parsing` are the measures that confine the processes which read documents, on the machine of the API.
    """

    workers: list[WorkerCard]
    relays: list[RelayCard]
    lanes: list[LaneLoad]
    brokers: list[Depth]
    duties: list[SweepDuty]
    parsing: list[str]


class Share(schemas_documents.Shape):
    """How much of something a tenant holds, and may hold; null: as much as there is room for."""

    used: int
    allowed: int | None


class QuotaResponse(schemas_documents.Shape):
    """The documents of a tenant and the bytes of their originals; above what is allowed nothing is added."""

    documents: Share
    bytes: Share

    @classmethod
    def of(cls, usage: Usage) -> "QuotaResponse":
        """What the tenant holds, as it is shown."""
        return cls(
            documents=Share(used=usage.documents, allowed=usage.quota.documents),
            bytes=Share(used=usage.bytes, allowed=usage.quota.bytes),
        )


class LanguageModel(schemas_documents.Shape):
    """The model that jobs use; `stand_in` is true for the built-in one, which is not a language model."""

    provider: str
    model: str
    stand_in: bool


class ProviderTrouble(schemas_documents.Shape):
    """A provider that does not answer, and what comes instead; `since` and `last` are seconds before now."""

    provider: str
    endpoint: str
    reason: str
    status: int | None
    tries: int
    since: float
    last: float
    sentence: str

    @classmethod
    def of(cls, trouble: Trouble) -> "ProviderTrouble":
        """The trouble as it is shown."""
        return cls(**{name: getattr(trouble, name) for name in cls.model_fields} | {"reason": trouble.what})


class StatusResponse(schemas_documents.Shape):
    """How things stand for the tenant; `installation` is there with the scope `admin` alone.

    `budgets` are those that are over a limit: at the hard one new work is refused and running work waits.
    `providers` are those that do not answer: work that needs one waits for it.
    """

    tenant: str
    lanes: list[LaneResponse]
    budgets: list[schemas_money.BudgetResponse]
    providers: list[ProviderTrouble]
    quota: QuotaResponse
    language_model: LanguageModel | None
    installation: Installation | None


@open_router.get("/healthz")
async def healthz() -> Alive:
    """Say that this process answers, also while everything waits for the database."""
    return Alive(alive=True)


@open_router.get("/readyz", responses={503: {"model": Ready, "description": "The database is unreachable."}})
def readyz(services: Services) -> Response:
    """Report whether requests are accepted, and whether a worker is online."""
    try:
        known = services.operations.workers()
    except StoreUnavailableError:
        known, database = (), False
    else:
        database = True
    ready = Ready(
        ready=database,
        database=database,
        broker=all(messages is not None for _, _, messages in services.operations.depths()),
        workers=any(each.state is WorkerState.WORKING for each in known),
    )
    return JSONResponse(ready.model_dump(), 200 if database else 503)


@open_router.get("/metrics", response_class=PlainTextResponse, responses=BESIDE)
def metrics(request: Request, _caller: Admin) -> Response:
    """Give everything that can be counted, for Prometheus; over all tenants, hence for the operator alone."""
    registry = CollectorRegistry(auto_describe=False)
    counting: Counting = request.app.state.counting
    counting.listeners = request.app.state.feed.listeners
    registry.register(counting)
    return Response(generate_latest(registry), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/status")
def status(services: Services, caller: Reader) -> StatusResponse:
    """Show what of yours is queued and running; with the scope `admin`, the workers and brokers too."""
    mine = services.operations.live_counts(caller.tenant)
    lanes = [
        LaneResponse(
            lane=lane,
            queued=mine.get(lane, {}).get("queued", 0),
            running=mine.get(lane, {}).get("running", 0),
        )
        for lane in LANE_RANK
    ]
    whole = _installation(services) if caller.may(Scope.ADMIN) else None
    limits = services.billing.budgets(caller.tenant)
    over = [schemas_money.BudgetResponse.of(each) for each in limits if each.over_soft or each.over_hard]
    default_model = services.jobs.model
    model = None
    if default_model is not None:
        model = LanguageModel(
            provider=default_model.provider, model=default_model.name, stand_in=default_model.stand_in
        )
    return StatusResponse(
        tenant=caller.tenant,
        lanes=lanes,
        budgets=over,
        providers=[ProviderTrouble.of(each) for each in services.operations.troubles()],
        quota=QuotaResponse.of(services.quotas.usage(caller.tenant)),
        language_model=model,
        installation=whole,
    )


@router.get("/quota")
def quota(services: Services, caller: Reader) -> QuotaResponse:
    """Show how many documents and bytes your tenant holds, and may hold."""
    return QuotaResponse.of(services.quotas.usage(caller.tenant))


def _installation(services: AppServices) -> Installation:
    counted = services.operations.lanes()
    return Installation(
        workers=[
            WorkerCard(
                name=each.name,
                state=each.state,
                lanes=list(each.lanes),
                processes=each.processes,
                busy=each.busy,
                silent=each.silent,
            )
            for each in services.operations.workers()
        ],
        relays=[
            RelayCard(**{name: getattr(each, name) for name in RelayCard.model_fields})
            for each in services.operations.relays()
        ],
        lanes=[
            LaneLoad(**{name: getattr(load, name) for name in LaneLoad.model_fields})
            for load in (counted.get(lane, LaneCount(lane)) for lane in LANE_RANK)
        ],
        brokers=[
            Depth(broker=broker, lane=lane, messages=messages)
            for broker, lane, messages in services.operations.depths()
        ],
        duties=[
            SweepDuty(**{name: getattr(each, name) for name in SweepDuty.model_fields})
            for each in services.operations.duties()
        ],
        parsing=list(services.runtime.parsers.measures()),
    )
