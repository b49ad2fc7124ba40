"""Jobs: parameters, progress and results."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from holdfast.bootstrap import AppServices
from holdfast.core.errors import NotFoundError
from holdfast.core.records import TENANT
from holdfast.core.states import LIVE, Status
from holdfast.service import results as tables
from holdfast.service.jobs import JobView
from holdfast.service.records import JobQuery
from holdfast.web import forms, rendering
from holdfast.web.page_access import Services

SHOWN = 100
RESULTS = 50
PLACE = r"^\d{1,9}\.\d{1,9}$"

router = rendering.router()


@router.get("/jobs")
def jobs(
    request: Request,
    services: Services,
    who: rendering.Who,
    start: Annotated[str, Query(max_length=200, description="A kind: the dialog for a job is open.")] = "",
    collection: Annotated[str, Query(max_length=200, description="The collection that it is for.")] = "",
) -> Response:
    """Show the jobs, the newest first."""
    return rendering.page(
        request,
        who,
        "jobs.html",
        "Jobs",
        views=services.jobs.page(JobQuery(who.tenant, limit=SHOWN)),
        kinds=services.jobs.kinds,
        start=start if start in services.jobs.kinds else "",
        chosen=collection,
        form_fields=forms.fields,
        collections=services.collections.all(who.tenant),
        model=services.jobs.model,
        unpriced=services.actions.is_unpriced(services.jobs.model),
    )


@router.get("/jobs/{name}")
def job(
    request: Request,
    services: Services,
    who: rendering.Who,
    name: str,
    after: Annotated[str | None, Query(pattern=PLACE)] = None,
) -> Response:
    """Show a job: its stages, its counts and its results."""
    if not TENANT.fullmatch(name):
        raise NotFoundError("there is no such job", code="unknown_job")
    view = services.jobs.view(who.tenant, name)
    position = tuple(int(each) for each in after.split(".")) if after is not None else (-1, -1)
    results = services.jobs.results(view, after=(position[0], position[1]), limit=RESULTS)
    titles = _titles(services, who.tenant, view, {each.document for each in results})
    last = results[-1] if len(results) == RESULTS else None
    return rendering.page(
        request,
        who,
        "job.html",
        f"{view.spec.title}: {view.job.about}",
        view=view,
        counts={name: number for name, number in services.jobs.counts(view).items() if number},
        results=results,
        follows=f"{last.slice}.{last.position}" if last is not None else None,
        is_live=view.job.run.status in LIVE,
        doing=_doing(view),
        titles=titles,
        own_view=forms.view(view.spec.view, results=results, titles=titles, options=view.job.options),
        columns=list(tables.row(view.spec, view.job.options, {})),
        row=lambda result: tables.row(view.spec, view.job.options, result.data),
    )


def _doing(view: JobView) -> str:
    """What a job that is under way does, or waits for."""
    if view.waiting is not None:
        return f"{view.waiting.sentence} It continues by itself after that."
    if view.job.run.status is Status.QUEUED:
        return "Waiting for a free worker."
    return "In progress."


def _titles(services: AppServices, tenant: str, view: JobView, names: set[str]) -> dict[str, str]:
    """The titles of documents that are still in the job's collection."""
    if view.job.collection is None:
        return {}
    return {
        each.document.id: each.document.title
        for each in services.views.some(tenant, view.job.collection, names)
    }
