"""`holdfast jobs`: start one, follow it, list them, read what they left, end one."""

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from holdfast.api import jobs as wire
from holdfast.api import schemas_jobs
from holdfast.bootstrap import AppServices
from holdfast.cli import context, costs, temporary_worker, terminal
from holdfast.cli.exit_codes import CommandError, Exit
from holdfast.core.records import RequestResult
from holdfast.core.states import LIVE, Disposition, Status
from holdfast.service import formatting
from holdfast.service import results as tables
from holdfast.service.billing import refusal
from holdfast.service.estimates import Estimate
from holdfast.service.jobs import JobRequest, Jobs, JobView
from holdfast.service.records import JobQuery, StoredResult
from holdfast.service.requests import RequestContext

LOOK_EVERY = 0.2
MODES = ("retry", "replace", "force")
STAND_IN = (
    "no language model is configured: the built-in stand-in only quotes the text (see HOLDFAST_LLM_PROVIDER)"
)


@dataclass(frozen=True, slots=True)
class Wanting:
    """A job that somebody at a terminal wants."""

    kind: str
    params: Mapping[str, Any]
    collection: str | None
    documents: Sequence[str]
    mode: str
    tenant: str
    yes: bool = False
    wait_for_ready: bool = False
    max_cost: float | None = None


def start(wanting: Wanting, *, wait: bool, as_json: bool) -> Exit:
    """The job was asked for, and followed to its end unless nobody waits."""
    if wanting.mode not in MODES:
        raise CommandError(f"--mode must be one of {', '.join(MODES)}", Exit.USAGE, code="bad_params")
    console = terminal.console(quiet=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(temporary_worker.ended_by_a_signal())
        services = stack.enter_context(context.services(None))
        jobs = services.jobs
        if not jobs.kinds[wanting.kind].has_estimate:
            console.print(f"jobs of kind {wanting.kind} give no estimate", style="care", markup=False)
        elif not costs.agreed(console, _foreseen(services, wanting), "the job", yes=wanting.yes or as_json):
            return Exit.REFUSED
        view, disposition = _requested(services, wanting)
        if wait and view.job.run.status in LIVE:
            helper = temporary_worker.Helper(services.operations, console, view.job.run.pipeline)
            view = followed(jobs, view, console, stack.enter_context(helper))
        return _ended(jobs, view, console, as_json=as_json, disposition=disposition)


def _foreseen(services: AppServices, wanting: Wanting) -> Estimate:
    """What the job would cost."""
    params, collection = dict(wanting.params), wanting.collection
    if wanting.documents:
        params["documents"] = list(wanting.documents)
        if len(wanting.documents) == 1 and collection is None:
            collection = services.documents.get(wanting.tenant, wanting.documents[0]).collection
    return services.estimates().of_job(wanting.tenant, collection or "default", wanting.kind, params)


def _requested(services: AppServices, wanting: Wanting) -> tuple[JobView, Disposition]:
    jobs = services.jobs
    wish = RequestContext(wanting.tenant, context.actor())
    params = dict(wanting.params)
    most = costs.nano_dollars(wanting.max_cost)
    order = JobRequest(
        wanting.kind, params, wanting.mode, wait_for_ready=wanting.wait_for_ready, max_cost=most
    )
    if len(wanting.documents) == 1 and wanting.collection is None:
        document = services.documents.get(wanting.tenant, wanting.documents[0])
        answer = jobs.on_document(wish, document, order)
    else:
        if wanting.documents:
            params["documents"] = list(wanting.documents)
        collection = services.collections.get(wanting.tenant, wanting.collection or "default")
        answer = jobs.on_collection(wish, collection, order)
    if answer.disposition is Disposition.REFUSED:
        code, message = refusal(answer.reason)
        raise CommandError(f"refused: {message}", Exit.REFUSED, code=code)
    return asked_for(jobs, wanting.tenant, answer), answer.disposition


def asked_for(jobs: Jobs, tenant: str, answer: RequestResult) -> JobView:
    """The job that an answer is about; CommandError when it is one that stands in the way."""
    view = jobs.view(tenant, answer.run_id or "")
    if answer.disposition is Disposition.DUPLICATE:
        message = f"{view.in_progress}; follow it with: holdfast jobs show {answer.run_id} --follow"
        raise CommandError(message, Exit.REFUSED, code="duplicate")
    return view


def followed(jobs: Jobs, view: JobView, console: Console, helper: temporary_worker.Helper) -> JobView:
    """The job once it has ended. Workers may come and go meanwhile."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    trouble = terminal.Notices(console)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task(view.job.run.kind, total=1.0)
        while view.job.run.status in LIVE:
            helper.see_to_it()
            share = view.standing.rolled.share if view.standing is not None else 0.0
            word = (view.stage or view.job.run.status.value) + view.phase
            waits = f" (waiting: {view.category})" if view.waiting is not None else ""
            bar.update(shown, completed=share, description=f"{view.job.run.kind}: {word}{waits}")
            trouble.tell(view.waiting.sentence if view.waiting is not None else None)
            time.sleep(LOOK_EVERY)
            view = jobs.view(view.job.run.tenant, view.job.run.id)
    return view


def _ended(
    jobs: Jobs, view: JobView, console: Console, *, as_json: bool, disposition: Disposition | None = None
) -> Exit:
    run = view.job.run
    if as_json:
        detail = schemas_jobs.JobDetail.build(view, jobs.counts(view), jobs.totals(view)).model_dump(
            mode="json"
        )
        terminal.show_json(detail if disposition is None else {**detail, "disposition": disposition})
    else:
        _print_summary(jobs, view, console)
    return Exit.FAILED if run.status is Status.FAILED else Exit.OK


def _print_summary(jobs: Jobs, view: JobView, console: Console) -> None:
    run, job = view.job.run, view.job
    console.print(f"job {run.id}: {run.kind} of {job.about}, {run.status}", style="head", markup=False)
    if run.status is Status.FAILED:
        said = terminal.one_line(f"{run.error_message} [{run.error_code}, {view.category}]")
        console.print(said, style="bad", markup=False)
    if view.waiting is not None:
        console.print(f"{view.waiting.sentence} ({view.category})", style="care", markup=False)
    if view.standing is not None:
        spent = view.standing.spent
        price = formatting.paid(spent.paid, spent.unpriced_calls)
        console.print(
            f"{formatting.count(job.tally.good, 'result')}, {job.tally.results - job.tally.good} failed; "
            f"{formatting.count(spent.paid_calls, 'call')} paid, {spent.reused_calls} reused, {price}"
        )
    counts = ", ".join(f"{number} {name}" for name, number in jobs.counts(view).items() if number)
    if counts:
        console.print(counts, style="quiet")
    if view.model.stand_in:
        console.print(STAND_IN, style="care")
    if run.status is Status.SUCCESS:
        console.print(f"see the results with: holdfast jobs results {run.id}")


def listed(
    tenant: str, kind: str | None, collection: str | None, state: str | None, most: int, *, as_json: bool
) -> None:
    """The jobs of a tenant, the newest at the top."""
    if state is not None and state not in set(Status):
        raise CommandError(
            f"unknown state {state!r}; use one of {', '.join(Status)}", Exit.USAGE, code="bad_state"
        )
    with context.services(None) as services:
        jobs = services.jobs
        known = None if kind is None else jobs.known_kind(kind)
        views = jobs.page(JobQuery(tenant, known, collection, state, None, most))
        if as_json:
            terminal.show_json([schemas_jobs.JobResponse.of(each).model_dump(mode="json") for each in views])
            return
        table = terminal.table("job", "kind", "about", "state", "results", "requested", numbers=("results",))
        for each in views:
            run = each.job.run
            word = f"{run.status} ({each.stage})" if each.stage else run.status.value
            row = (
                run.id,
                run.kind,
                each.job.about,
                word,
                each.job.tally.good,
                terminal.moment(run.queued_at),
            )
            table.add_row(*terminal.cells(*row))
        terminal.console().print(table if views else "no jobs")


def show(tenant: str, job_id: str, *, follow: bool, as_json: bool) -> Exit:
    """How the job stands, or ended."""
    console = terminal.console(quiet=as_json)
    with contextlib.ExitStack() as stack:
        stack.enter_context(temporary_worker.ended_by_a_signal())
        services = stack.enter_context(context.services(None))
        jobs = services.jobs
        view = jobs.view(tenant, job_id)
        if follow and view.job.run.status in LIVE:
            helper = temporary_worker.Helper(services.operations, console, view.job.run.pipeline)
            view = followed(jobs, view, console, stack.enter_context(helper))
        return _ended(jobs, view, console, as_json=as_json)


def results(tenant: str, job_id: str, *, as_csv: bool, as_json: bool) -> None:
    """What the job left, as lines, as CSV or as one JSON document."""
    with context.services(None) as services:
        jobs = services.jobs
        view = jobs.view(tenant, job_id)
        if view.job.run.status is not Status.SUCCESS:
            message = f"the job has no results; it is {view.job.run.status}"
            raise CommandError(message, Exit.REFUSED, code="no_results")
        if as_csv:
            rows = wire.table(jobs, view)
            sys.stdout.writelines(map(terminal.harmless, rows) if sys.stdout.isatty() else rows)
        elif as_json:
            terminal.show_json([tables.shape(view.spec, each) for each in _each(jobs, view)])
        else:
            _print(terminal.console(), view, _each(jobs, view))


def _each(jobs: Jobs, view: JobView) -> Iterator[StoredResult]:
    return (each for page in wire.pages(jobs, view) for each in page)


def _print(console: Console, view: JobView, results: Iterator[StoredResult]) -> None:
    for each in results:
        where = f"{each.document}, page {each.page}" if each.page is not None else each.document
        if each.good:
            for name, value in tables.row(view.spec, view.job.options, each.data).items():
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                console.print(terminal.one_line(f"{name}: {text}"), markup=False)
        else:
            console.print(terminal.one_line(each.data["error"]["message"]), style="bad", markup=False)
        console.print(f"  ({where})", style="quiet", markup=False)
    if view.model.stand_in:
        console.print(STAND_IN, style="care")


def cancel(tenant: str, job_id: str, *, as_json: bool) -> None:
    """The job has ended; exit code 3 when it had already."""
    with context.services(None) as services:
        jobs = services.jobs
        view = jobs.view(tenant, job_id)
        if not jobs.cancel(RequestContext(tenant, context.actor()), view):
            message = f"the job has already ended; it is {jobs.view(tenant, job_id).job.run.status}"
            raise CommandError(message, Exit.REFUSED, code="nothing_to_cancel")
        if as_json:
            terminal.show_json({"cancelled": job_id})
        else:
            terminal.console().print(f"cancelled job {job_id}", markup=False)
