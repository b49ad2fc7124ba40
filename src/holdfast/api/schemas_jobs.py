"""What jobs look like on the wire."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import Field

from holdfast.api.schemas_documents import (
    Active,
    Cost,
    LaneName,
    MaxCost,
    Priority,
    ProgressResponse,
    Shape,
    moment,
)
from holdfast.core.categories import Category
from holdfast.core.states import Disposition, Status, shown
from holdfast.engine.job_specs import ActionSpec, JobSpec
from holdfast.kinds import parameters
from holdfast.service import results
from holdfast.service.jobs import JobView

StateName = Literal["queued", "running", "success", "failed", "cancelled", "superseded"]


class Callback(Shape):
    """The URL to notify when the job ends; with a secret the request is signed."""

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    secret: Annotated[str, Field(max_length=1000)] | None = None

    def as_target(self, request: Request) -> dict[str, str]:
        """The callback as stored, with the base URL at which the caller reached this installation."""
        return self.model_dump(exclude_none=True) | {"link": str(request.base_url).rstrip("/")}


class NewJob(Shape):
    """A job to be done.

    `GET /kinds` lists the kinds with their `params`. `mode` says what to do with a job of the same kind that
    is there: `retry` refuses while one is under way and does nothing if the same was done; `force` does the
    same once more; `replace` also ends one that is under way. `estimate` is the `fingerprint` of an estimate:
    409 `other_estimate` if that was of another job. With `wait_for_ready` the job waits for documents that
    are being indexed; without it those that are not ready are left out, and a job without any is refused.
    `max_cost` is what it may spend at most, in US dollars.
    """

    kind: Annotated[str, Field(max_length=40)]
    params: dict[str, Any] = Field(default_factory=dict)
    mode: Literal["retry", "replace", "force"] = "retry"
    lane: LaneName = "bulk"
    priority: Priority = 5
    callback: Callback | None = None
    max_cost: MaxCost = None
    estimate: Annotated[str, Field(max_length=128)] | None = None
    wait_for_ready: bool = False


class JobError(Shape):
    """Why a job failed: a code, a sentence, and what sort of thing it is."""

    code: str
    message: str
    category: Category


class JobWait(Shape):
    """What a live job is waiting for. It continues by itself, or when the cause is removed."""

    reason: str
    category: Category
    sentence: str
    until: datetime | None


class JobResponse(Shape):
    """A job and how it stands.

    `results` and `failed_results` are what it left when it succeeded. `stand_in` is true where no language
    model was asked, but the built-in extractive stand-in.
    """

    job_id: str
    kind: str
    collection: str | None
    document_id: str | None
    state: str
    stage: str | None
    generation: int
    params: dict[str, Any]
    provider: str
    model: str
    stand_in: bool
    progress: ProgressResponse | None
    results: int
    failed_results: int
    waiting: JobWait | None
    cost: Cost | None
    error: JobError | None
    actor: str
    lane: str
    priority: int
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    seconds: float | None

    @classmethod
    def of(cls, view: JobView) -> "JobResponse":
        """The job as it is shown."""
        job, run, standing = view.job, view.job.run, view.standing
        subject_type, _, name = run.subject.partition(":")
        took = run.finished_at - run.started_at if run.finished_at and run.started_at else None
        apart = {"provider", "model", "prompts", "made"}
        return cls(
            job_id=run.id,
            kind=run.kind,
            collection=job.collection,
            document_id=name if subject_type == "document" else None,
            state=shown(run.kind, run.status),
            stage=view.stage,
            generation=run.generation,
            params={key: value for key, value in job.options.items() if key not in apart},
            provider=view.model.provider,
            model=view.model.name,
            stand_in=view.model.stand_in,
            progress=ProgressResponse.of(standing) if standing is not None else None,
            results=job.tally.good,
            failed_results=job.tally.results - job.tally.good,
            waiting=_waiting(view),
            cost=Cost.of(standing.spent) if standing is not None else None,
            error=_error(view),
            actor=job.actor,
            lane=run.lane,
            priority=run.priority,
            queued_at=moment(run.queued_at),
            started_at=moment(run.started_at),
            finished_at=moment(run.finished_at),
            seconds=None if took is None else round(max(0.0, took), 3),
        )


def _waiting(view: JobView) -> JobWait | None:
    waiting, category = view.waiting, view.category
    if waiting is None or category is None:
        return None
    until = moment(waiting.until)
    return JobWait(reason=waiting.reason, category=category, sentence=waiting.sentence, until=until)


def _error(view: JobView) -> JobError | None:
    run, category = view.job.run, view.category
    if run.status is not Status.FAILED or category is None:
        return None
    return JobError(code=run.error_code or "work_failed", message=run.error_message or "", category=category)


class JobCounts(Shape):
    """What the finished slices of a job add up to.

    `asked` chunks (`qa`) or documents (`extract`); `found` results; `failed` documents without fields;
    `unusable` answers that could not be read, even a second time; `refused` inputs the provider rejected;
    `replaced` documents that had another generation by the time they were read; `duplicates` questions that
    were there already.
    """

    asked: int
    found: int
    failed: int
    unusable: int
    refused: int
    replaced: int
    duplicates: int


class JobDetail(Shape):
    """A job, and what its slices have done.

    `totals` is what an `export` or an `import` adds up to: `documents`, `chunks`, `vectors`, `without_bytes`
    (documents whose content was not to be had); of an export its `bytes`; of an import the documents that
    were `unchanged`, and `words_only`, chunks whose vectors are of a model that is not used here.
    """

    job: JobResponse
    counters: JobCounts
    totals: dict[str, int]

    @classmethod
    def build(cls, view: JobView, counts: Mapping[str, int], totals: Mapping[str, int]) -> "JobDetail":
        """The job with its counters as they are shown."""
        return cls(job=JobResponse.of(view), counters=JobCounts(**counts), totals=dict(totals))


class JobTaken(Shape):
    """What became of a request for a job."""

    job_id: str
    disposition: Disposition
    job: JobResponse


class JobPage(Shape):
    """Jobs, the newest first; `next` is the cursor of the next page, if any."""

    jobs: list[JobResponse]
    next: str | None


class JobResultList(Shape):
    """Results of a job in a fixed order; `next` is the cursor of the next page, if any.

    There are none before the job has succeeded. What a result has besides its place depends on the kind
    (`GET /kinds`); `error` says why there is none for a document.
    """

    job_id: str
    state: str
    stand_in: bool
    results: list[dict[str, Any]]
    next: str | None


class KindShape(Shape):
    """A kind of job: its title, the JSON Schemas of its `params` and of one result, its stages.

    `estimates` is true where `POST /estimate` says what a job would cost before it is requested.
    """

    kind: str
    title: str
    description: str
    params: dict[str, Any]
    result: dict[str, Any]
    stages: list[str]
    estimates: bool

    @classmethod
    def of(cls, name: str, spec: JobSpec) -> "KindShape":
        """The kind as it is shown."""
        return cls(
            kind=name,
            title=spec.title,
            description=spec.description,
            params=parameters.schema(spec),
            result=results.schema(spec),
            stages=list(spec.stages),
            estimates=spec.has_estimate,
        )


class ActionType(Shape):
    """A type of action: its title, and the JSON Schema of its `params`."""

    sort: str
    title: str
    params: dict[str, Any]

    @classmethod
    def of(cls, spec: ActionSpec) -> "ActionType":
        """The type as it is shown."""
        return cls(sort=spec.name, title=spec.title, params=parameters.schema(spec))


class Kinds(Shape):
    """What can be requested: kinds of jobs, and types of actions."""

    jobs: list[KindShape]
    actions: list[ActionType]


class JobCancelled(Shape):
    """The job after it was ended."""

    job: JobResponse
    cancelled: bool


def active(view: JobView) -> Active:
    """What stands against a request."""
    run, standing = view.job.run, view.standing
    return Active(
        run_id=run.id,
        status=shown(run.kind, run.status),
        generation=run.generation,
        progress=ProgressResponse.of(standing) if standing is not None else None,
    )
