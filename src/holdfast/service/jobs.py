"""Jobs: start, read, read results, cancel."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core import categories, subjects
from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.core.records import Ask, Landed, RequestResult
from holdfast.core.states import LIVE, Status
from holdfast.engine.engine import Engine
from holdfast.engine.job_specs import JobSpec
from holdfast.engine.kinds import Supplies
from holdfast.engine.models import Model
from holdfast.kinds import corpus, job_summary, model_calls, parameters
from holdfast.kinds.corpus import JobScope
from holdfast.service import explanations
from holdfast.service.actions import checked_callback
from holdfast.service.explanations import Waiting
from holdfast.service.requests import RequestContext
from holdfast.store.jobs import job_results, job_sources, jobs
from holdfast.store.jobs.job_results import StoredResult
from holdfast.store.jobs.jobs import Job, JobQuery
from holdfast.store.library import documents
from holdfast.store.library.collections import Collection
from holdfast.store.library.document_requests import DocumentAccess
from holdfast.store.library.documents import Document
from holdfast.store.views import events
from holdfast.store.views.events import RunStanding


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job that is asked for. `mode` says what to do with one that is there already.

    With `wait_for_ready` it waits for documents that are being indexed; else it reads those that are ready.
    """

    kind: str
    params: Mapping[str, Any]
    mode: str = "retry"
    callback: Mapping[str, str] | None = None
    wait_for_ready: bool = False
    max_cost: int | None = None


@dataclass(frozen=True, slots=True)
class JobView:
    """A job and how it stands."""

    job: Job
    standing: RunStanding | None
    spec: JobSpec

    @property
    def stage(self) -> str | None:
        """What a running job is doing; None for one that is not at work, or about to begin another phase."""
        if self.job.run.status is not Status.RUNNING:
            return None
        counts = self.standing.stages if self.standing is not None else {}
        stages = self.spec.stages
        if self.job.run.phase and len(stages) > 1:
            # Counts are those of the phase: the stages of earlier ones are over.
            first = next((at for at, name in enumerate(stages) if name in counts), None)
            if first is None:
                return None
            stages = stages[first:]
        open_stages = (name for name in stages if name not in counts or counts[name][0] < counts[name][1])
        return next(open_stages, stages[-1] if stages else None)

    @property
    def category(self) -> categories.Category | None:
        """Why it failed, or what it waits for, in one word."""
        run = self.job.run
        if run.status is Status.FAILED:
            return categories.of_code(run.error_code or "")
        return categories.of_wait(self.waiting.reason) if self.waiting is not None else None

    @property
    def waiting(self) -> Waiting | None:
        """What a live job waits for; None for one that is at work, or has ended."""
        return explanations.waiting(self.standing)

    @property
    def model(self) -> Model:
        """The model that is asked."""
        return Model(str(self.job.options.get("provider", "")), str(self.job.options.get("model", "")))

    @property
    def phase(self) -> str:
        """Which phase a live job is in, for a sentence; nothing in the first, which may be the only one."""
        run = self.job.run
        return f", phase {run.phase + 1}" if run.phase and run.status is Status.RUNNING else ""

    @property
    def in_progress(self) -> str:
        """The message for a request for a job while this one is in progress."""
        share = self.standing.rolled.share if self.standing is not None else 0.0
        where = (self.stage or self.job.run.status.value) + self.phase
        far = f", {share * 100:.0f} %" if self.job.run.status is Status.RUNNING else ""
        return f"{self.spec.title} of {self.job.about}: already in progress ({where}{far})"


class Jobs:
    """The jobs of an installation, as one process sees them."""

    def __init__(self, engine: Engine, supplies: Supplies, *, allow_private: bool) -> None:
        self._engine = engine
        self._allow_private = allow_private
        self._db = engine.db
        self._supplies = supplies
        self.model = model_of(supplies)

    @property
    def kinds(self) -> Mapping[str, JobSpec]:
        """The kinds that can be requested, by name."""
        return self._engine.registry.jobs

    def known_kind(self, name: str) -> str:
        """The name of a kind whose jobs are listed; BadRequestError, with those that exist."""
        kind = self._engine.registry.get(name)
        if kind is None or kind.job is None:
            self._engine.registry.requested_job(name)
        return name

    def on_collection(self, wish: RequestContext, collection: Collection, order: JobRequest) -> RequestResult:
        """What became of a request for a job on a collection, or on some of its documents."""
        params = self._checked(order)
        named = params.get("documents")
        named = None if named is None else tuple(named)
        scope = JobScope(wish.tenant, collection.id, named, corpus.filter_of(params))
        return self._ask(wish, f"collection:{collection.id}", scope, order, params)

    def on_document(self, wish: RequestContext, document: Document, order: JobRequest) -> RequestResult:
        """What became of a request for a job on a document."""
        params = self._checked(order)
        if params.get("documents") is not None:
            raise BadRequestError("documents: this job is already on a single document", code="bad_params")
        if wish.only is not None:  # it may have changed while the request was received
            current = documents.document(self._db, wish.tenant, document.id)
            DocumentAccess(wish.only).check(current or document)
        scope = JobScope(wish.tenant, document.collection, (document.id,), corpus.filter_of(params))
        return self._ask(wish, subjects.of_document(document.id), scope, order, params)

    def _checked(self, order: JobRequest) -> dict[str, Any]:
        return parameters.checked(self._engine.registry.requested_job(order.kind), order.params)

    def _ask(
        self, wish: RequestContext, subject: str, scope: JobScope, order: JobRequest, params: dict[str, Any]
    ) -> RequestResult:
        spec = self._engine.registry.job(order.kind)
        model = model_for(self._supplies, params) if spec.asks_model else None
        sources = scope.sources(self._db) if spec.reads_documents else []
        waits = (
            spec.reads_documents
            and order.wait_for_ready
            and job_sources.coming(self._db, wish.tenant, scope.collection, scope.documents)
        )
        if waits:
            params = {**params, "wait_for_ready": True}
        if spec.reads_documents and not sources and not waits:
            message = "no document is ready; index some first, or wait until they are ready"
            raise BadRequestError(message, code="nothing_ready")
        ask = Ask(
            kind=order.kind,
            subject=subject,
            content=corpus.digest(sources) if spec.reads_documents else "",
            options=params if model is None else corpus.frozen(params, model, spec.prompts),
            tenant=wish.tenant,
            collection=scope.collection,
            lane=wish.lane,
            priority=wish.priority,
            actor=wish.actor,
            force=order.mode != "retry",
            callback=checked_callback(order.callback, allow_private=self._allow_private),
            max_cost=order.max_cost,
        )
        return self._requested(self._engine.checked(ask), replaces=order.mode == "replace")

    def _requested(self, ask: Ask, *, replaces: bool) -> RequestResult:
        patience = self._engine.parts.patience

        def request() -> RequestResult:
            run_id = self._engine.host.token()
            return jobs.request(self._db, ask, run_id=run_id, patience=patience, replace=replaces)

        answer = request()
        if replaces and not answer.created and answer.status in LIVE and answer.head_id is not None:
            # The very same job is under way: it is ended, and only it.
            self._engine.cancel(answer.head_id, run_id=answer.run_id, actor=ask.actor)
            answer = request()
        self._engine.wake_for(ask, answer)
        return answer

    def view(self, tenant: str, job_id: str) -> JobView:
        """The job as it stands; NotFoundError when the tenant has no such job."""
        job = jobs.one(self._db, tenant, job_id)
        if job is None:
            raise NotFoundError(f"there is no job {job_id!r}", code="unknown_job")
        return self._views([job])[0]

    def page(self, query: JobQuery) -> list[JobView]:
        """The jobs that are wanted, the newest first."""
        return self._views(jobs.page(self._db, query))

    def _views(self, rows: list[Job]) -> list[JobView]:
        registry = self._engine.registry
        known = events.standings(self._db, {job.run.id for job in rows}, registry.phase_shares)
        return [JobView(job, known.get(job.run.id), registry.job(job.run.kind)) for job in rows]

    def counts(self, view: JobView) -> dict[str, int]:
        """What the finished slices of the job add up to."""
        return job_summary.summed(jobs.slice_results(self._db, view.job.run.id))

    def totals(self, view: JobView) -> dict[str, int]:
        """What else the finished slices of the job count, each added up: of an export its documents."""
        results = jobs.slice_results(self._db, view.job.run.id)
        names = {name for each in results for name, value in each.items() if type(value) is int}
        names -= set(job_summary.COUNTS)
        return {name: sum(int(each.get(name, 0)) for each in results) for name in sorted(names)}

    def results(
        self, view: JobView, *, after: tuple[int, int] = (-1, -1), limit: int = 100
    ) -> list[StoredResult]:
        """The results of a job that succeeded, after the place `after`; none of any other."""
        run = view.job.run
        return job_results.page(self._db, run.tenant, run.id, after=after, limit=limit)

    def cancel(self, wish: RequestContext, view: JobView) -> bool:
        """The job has ended; False when it had already."""
        run = view.job.run
        return isinstance(self._engine.cancel(run.head_id, run_id=run.id, actor=wish.actor), Landed)


def model_for(supplies: Supplies, params: Mapping[str, Any]) -> Model:
    """The model that these parameters name, or the one set up; BadRequestError where there is none."""
    if params.get("provider") is None and model_of(supplies) is None:
        raise BadRequestError(
            "no language model is configured; set HOLDFAST_LLM_PROVIDER", code="no_provider"
        )
    return model_calls.chosen(supplies, params)


def model_of(supplies: Supplies) -> Model | None:
    """The language model that jobs are to ask; None when none is set up."""
    return None if supplies.llm is None or not supplies.llm_model else model_calls.model(supplies)
