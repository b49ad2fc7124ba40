"""Jobs: start, read, list, read results, cancel."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import pydantic_core
from fastapi import Query, Request
from fastapi.responses import Response, StreamingResponse

from holdfast.api import estimates, parameters, routing, schemas_jobs
from holdfast.api.access import OwnCollection, OwnDocument, Reader, filtered, identified, writer
from holdfast.api.dependencies import Before, resolve
from holdfast.api.errors import Problem, problem
from holdfast.api.idempotency import IdempotencyKey, RouteReply, answer_once, fingerprint
from holdfast.api.parameters import Services
from holdfast.api.schemas_documents import nano_dollars
from holdfast.bootstrap import AppServices
from holdfast.core.errors import ConflictError, NotFoundError
from holdfast.core.records import RequestResult
from holdfast.core.states import Disposition, shown
from holdfast.service import results
from holdfast.service.access import Identity
from holdfast.service.billing import refusal
from holdfast.service.jobs import JobRequest, Jobs, JobView
from holdfast.service.records import JobQuery as Wanted
from holdfast.service.records import StoredResult as Kept
from holdfast.service.requests import RequestContext

router = routing.router("jobs")

JOB = "job_id"
# Rows of a table that are read at a time.
STEP = 500
# Signs at which a spreadsheet would take a text for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")

TAKEN: dict[int | str, dict[str, Any]] = {
    200: {"model": schemas_jobs.JobTaken, "description": "The same job is already done: `unchanged`."},
    402: {"model": Problem, "description": "The budget is used up."},
    409: {"model": Problem, "description": "One is in progress (`active` names it), or nothing is ready."},
}


def _view(request: Request) -> JobView:
    name, caller = parameters.valid_id(request.path_params[JOB]), identified(request)
    view = parameters.services_of(request).jobs.view(caller.tenant, name)
    if not parameters.services_of(request).documents.shows(
        caller.tenant, view.job.run.subject, only=caller.only
    ):
        raise NotFoundError(f"there is no job {name!r}", code="unknown_job")
    return view


def _own_view(request: Request) -> JobView:
    view = resolve(request, _view)
    resolve(request, writer)
    return view


PathJob = Annotated[JobView, Before(_view, (JOB,))]
OwnJob = Annotated[JobView, Before(_own_view, (JOB,))]


def _order(request: Request, body: schemas_jobs.NewJob) -> JobRequest:
    callback = body.callback.as_target(request) if body.callback is not None else None
    most = nano_dollars(body.max_cost)
    return JobRequest(body.kind, body.params, body.mode, callback, body.wait_for_ready, max_cost=most)


def _answered(
    request: Request,
    services: AppServices,
    caller: Identity,
    body: schemas_jobs.NewJob,
    key: str | None,
    ask: Callable[[Jobs, RequestContext, JobRequest], RequestResult],
) -> Response:
    mine = RequestContext(
        caller.tenant, caller.actor, body.lane, body.priority, restriction=caller.restriction
    )

    def do() -> RouteReply:
        return taken(services, caller.tenant, ask(services.jobs, mine, _order(request, body)))

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request, body.model_dump_json()), do)


def taken(services: AppServices, tenant: str, answer: RequestResult) -> RouteReply:
    """The response to a request for a job."""
    if answer.disposition is Disposition.REFUSED:
        code, message = refusal(answer.reason)
        return RouteReply(402, problem(code=code, message=message))
    view = services.jobs.view(tenant, answer.run_id or "")
    if answer.disposition is Disposition.DUPLICATE:
        active = schemas_jobs.active(view)
        return RouteReply(409, problem(code="duplicate", message=view.in_progress, active=active))
    job = schemas_jobs.JobResponse.of(view)
    body = schemas_jobs.JobTaken(job_id=job.job_id, disposition=answer.disposition, job=job)
    return RouteReply(202 if answer.created else 200, body)


@router.post(
    "/collections/{collection_id}/jobs",
    status_code=202,
    response_model=schemas_jobs.JobTaken,
    responses=TAKEN,
)
def start_collection_job(
    request: Request,
    services: Services,
    caller: Reader,
    collection: OwnCollection,
    body: schemas_jobs.NewJob,
    key: IdempotencyKey = None,
) -> Response:
    """Start a job on a collection, or on some of its documents; 409 names the one that is in progress."""
    estimates.check(body.estimate, collection.id, kind=body.kind, params=body.params)
    return _answered(
        request,
        services,
        caller,
        body,
        key,
        lambda jobs, wish, order: jobs.on_collection(wish, collection, order),
    )


@router.post(
    "/documents/{document_id}/jobs", status_code=202, response_model=schemas_jobs.JobTaken, responses=TAKEN
)
def start_document_job(
    request: Request,
    services: Services,
    caller: Reader,
    document: OwnDocument,
    body: schemas_jobs.NewJob,
    key: IdempotencyKey = None,
) -> Response:
    """Start a job on a document; 409 names the one that is in progress."""
    params = {**body.params, "documents": [document.id]}
    estimates.check(body.estimate, document.collection, kind=body.kind, params=params)
    return _answered(
        request,
        services,
        caller,
        body,
        key,
        lambda jobs, wish, order: jobs.on_document(wish, document, order),
    )


@router.get("/kinds")
@filtered
def all_kinds(services: Services, _caller: Reader) -> schemas_jobs.Kinds:
    """List what can be requested: kinds of jobs and types of actions, with their parameters."""
    return schemas_jobs.Kinds(
        jobs=[schemas_jobs.KindShape.of(name, spec) for name, spec in services.jobs.kinds.items()],
        actions=[schemas_jobs.ActionType.of(spec) for spec in services.actions.types.values()],
    )


@router.get("/jobs")
def some_jobs(
    services: Services,
    caller: Reader,
    collection: Annotated[str | None, Query(max_length=64, description="Only this collection.")] = None,
    kind: Annotated[str | None, Query(max_length=40, description="Only this kind.")] = None,
    state: Annotated[schemas_jobs.StateName | None, Query(description="Only in this state.")] = None,
    limit: parameters.Limit = 100,
    cursor: parameters.Cursor = None,
) -> schemas_jobs.JobPage:
    """List the jobs, the newest first."""
    query = Wanted(
        caller.tenant,
        None if kind is None else services.jobs.known_kind(kind),
        None if collection is None else parameters.valid_id(collection),
        state,
        _after(services, caller, cursor),
        limit,
    )
    views = services.jobs.page(query)
    follows = views[-1].job.run.id if len(views) == limit else None
    return schemas_jobs.JobPage(jobs=[schemas_jobs.JobResponse.of(each) for each in views], next=follows)


def _after(services: AppServices, caller: Identity, cursor: str | None) -> tuple[float, str] | None:
    """Where a page begins: after the job that the cursor names, which must be one of the caller's."""
    if cursor is None:
        return None
    run = services.jobs.view(caller.tenant, parameters.id_of(cursor)).job.run
    return run.queued_at, run.id


@router.get("/jobs/{job_id}")
@filtered
def one_job(services: Services, view: PathJob) -> schemas_jobs.JobDetail:
    """Show a job: its state, stage, progress, cost, and why it failed or waits."""
    return schemas_jobs.JobDetail.build(view, services.jobs.counts(view), services.jobs.totals(view))


@router.get(
    "/jobs/{job_id}/results",
    response_model=schemas_jobs.JobResultList,
    responses={200: {"content": {"text/csv": {}}, "description": "A page as JSON, or all as JSON or CSV."}},
)
@filtered
def job_results(
    services: Services,
    view: PathJob,
    limit: parameters.Limit = 100,
    cursor: parameters.Cursor = None,
    form: Annotated[Literal["json", "csv"], Query(alias="format", description="`csv` gives all.")] = "json",
    every: Annotated[
        bool, Query(alias="all", description="All results in one response, for a download.")
    ] = False,
) -> Any:
    """Read the results of a job that succeeded, also after a later one has."""
    run = view.job.run
    if form == "csv" or every:
        lines = table(services.jobs, view) if form == "csv" else document(services.jobs, view)
        name = {"Content-Disposition": f'attachment; filename="{run.kind}-{run.id}.{form}"'}
        kind = "text/csv" if form == "csv" else "application/json"
        return StreamingResponse(lines, media_type=kind, headers=name)
    known = parameters.numbers(cursor, 2)
    after = (known[0], known[1]) if known is not None else (-1, -1)
    page = services.jobs.results(view, after=after, limit=limit)
    follows = f"{page[-1].slice}.{page[-1].position}" if len(page) == limit else None
    return schemas_jobs.JobResultList(
        job_id=run.id,
        state=shown(run.kind, run.status),
        stand_in=view.model.stand_in,
        results=[results.shape(view.spec, each) for each in page],
        next=follows,
    )


def pages(jobs: Jobs, view: JobView) -> Iterator[list[Kept]]:
    """All results of a job, a part at a time."""
    after = (-1, -1)
    while page := jobs.results(view, after=after, limit=STEP):
        yield page
        after = (page[-1].slice, page[-1].position)


def table(jobs: Jobs, view: JobView) -> Iterator[str]:
    """The results as CSV, a part at a time."""
    yield _csv([results.columns(view)])
    for page in pages(jobs, view):
        yield _csv([results.cells(view, each) for each in page])


def document(jobs: Jobs, view: JobView) -> Iterator[str]:
    """All results as one `JobResults`, a part at a time: they are never all in memory."""
    run = view.job.run
    frame = schemas_jobs.JobResultList(
        job_id=run.id,
        state=shown(run.kind, run.status),
        stand_in=view.model.stand_in,
        results=[],
        next=None,
    )
    before, after = frame.model_dump_json().split('"results":[]')
    yield f'{before}"results":['
    first = True
    for page in pages(jobs, view):
        parts = ",".join(pydantic_core.to_json(results.shape(view.spec, each)).decode() for each in page)
        yield parts if first else f",{parts}"
        first = False
    yield f"]{after}"


def _csv(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([[_cell(value) for value in row] for row in rows])
    return text.getvalue()


def _cell(value: Any) -> Any:
    """A value as a cell. A text that a spreadsheet would take for a formula has a quote before it."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


@router.post(
    "/jobs/{job_id}/cancel",
    response_model=schemas_jobs.JobCancelled,
    responses={409: {"model": Problem, "description": "It has already ended."}},
)
@filtered
def cancel_job(
    request: Request, services: Services, caller: Reader, job: OwnJob, key: IdempotencyKey = None
) -> Response:
    """Cancel a job; results of an earlier one stay."""

    def do() -> RouteReply:
        if not services.jobs.cancel(RequestContext(caller.tenant, caller.actor), job):
            word = shown(job.job.run.kind, services.jobs.view(caller.tenant, job.job.run.id).job.run.status)
            message = f"the job has already ended; it is {word}"
            raise ConflictError(message, code="nothing_to_cancel")
        view = services.jobs.view(caller.tenant, job.job.run.id)
        return RouteReply(
            200, schemas_jobs.JobCancelled(job=schemas_jobs.JobResponse.of(view), cancelled=True)
        )

    return answer_once(services, caller.tenant, key, lambda: fingerprint(request), do)
