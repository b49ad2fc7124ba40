"""Holdfast inside one script: it requests, it works and it reads. `holdfast.open` makes one.

The engine, the store and the tables behind it are private and may change with any release.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from holdfast.core.errors import NotFoundError, SchemaError
from holdfast.core.records import Ask, Chunk, Landed, RequestResult
from holdfast.core.states import Lane
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind, Supplies
from holdfast.kinds.document_kind import JobResult
from holdfast.ledger.prices import dollars
from holdfast.providers import local_llm
from holdfast.providers.base import Provider
from holdfast.service.jobs import JobRequest, Jobs
from holdfast.service.requests import RequestContext
from holdfast.store.base import dialect, revisions
from holdfast.store.base.database import Database
from holdfast.store.base.driver_errors import answering
from holdfast.store.features import open_database
from holdfast.store.library import collections, documents
from holdfast.store.views import reads

# Whom jobs ask where nobody says otherwise, as the settings have it.
STAND_IN = Supplies(llm=local_llm.NAME, llm_model=local_llm.MODEL)
# Rows read at a time by `visible_chunks`.
PAGE = 1000


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How one task ended: `finished`, `published`, `planned`, `failed`, `put_back` and so on."""

    kind: str
    subject: str
    generation: int
    slice: int
    ending: str
    reason: str


@dataclass(frozen=True, slots=True)
class SubjectState:
    """What the database says of one (kind, subject) now.

    `generation` is the latest that was requested, `published_generation` the one that readers see. The error
    is that of the latest run, if it failed.
    """

    kind: str
    subject: str
    status: str
    generation: int
    published_generation: int
    visible: bool
    error_code: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as it stands: `status` is queued, running, success, failed, cancelled or superseded."""

    job_id: str
    kind: str
    status: str
    params: Mapping[str, object]
    results: int
    error_code: str | None
    error_message: str | None


class Holdfast:
    """One database, some kinds and some providers, worked by this process. Close it after use."""

    def __init__(
        self,
        database: Database,
        kinds: Sequence[Kind],
        providers: Mapping[str, Provider],
        supplies: Supplies | None = None,
    ) -> None:
        self._database = database
        self._engine = Engine(database, EngineDependencies(kinds=kinds, providers=providers))
        self._jobs = Jobs(self._engine, supplies or STAND_IN, allow_private=False)

    def request(
        self,
        kind: str,
        subject: str,
        *,
        content: str = "",
        options: Mapping[str, object] | None = None,
        tenant: str = "default",
        lane: str = Lane.BULK,
        priority: int = 5,
        force: bool = False,
        max_cost: float | None = None,
    ) -> RequestResult:
        """What became of the request: accepted, duplicate, unchanged, superseding or refused, and why.

        `content` and `options` say what is to be done; the same ones again make nothing new, unless `force`.
        `max_cost` is in dollars, for this run. Raises BadRequestError for what can never be accepted.
        """
        limit = None if max_cost is None else dollars(max_cost)
        return self._engine.request(
            Ask(
                kind,
                subject,
                content=content,
                options=options or {},
                tenant=tenant,
                lane=lane,
                priority=priority,
                force=force,
                max_cost=limit,
            )
        )

    def start_job(
        self,
        kind: str,
        params: Mapping[str, object] | None = None,
        *,
        collection: str | None = None,
        document: str | None = None,
        tenant: str = "default",
        mode: str = "retry",
        max_cost: float | None = None,
    ) -> RequestResult:
        """What became of a request for a job on a collection or on one document; `run_id` is the job's id.

        The parameters are checked as the API checks them: BadRequestError names the one that is wrong. `mode`
        is retry, replace or force. The job is carried out by a worker that knows the kind, or by
        `run_until_idle`.
        """
        context = RequestContext(tenant, "script")
        limit = None if max_cost is None else dollars(max_cost)
        order = JobRequest(kind, params or {}, mode, max_cost=limit)
        if document is not None:
            record = documents.document(self._database, tenant, document)
            if record is None:
                raise NotFoundError(f"there is no document {document!r}", code="unknown_document")
            return self._jobs.on_document(context, record, order)
        name = collection or "default"
        target = collections.collection(self._database, tenant, name)
        if target is None:
            raise NotFoundError(f"there is no collection {name!r}", code="unknown_collection")
        return self._jobs.on_collection(context, target, order)

    def job(self, job_id: str, *, tenant: str = "default") -> JobState:
        """How the job stands; NotFoundError when the tenant has no such job."""
        job = self._jobs.view(tenant, job_id).job
        return JobState(
            job.run.id,
            job.run.kind,
            job.run.status.value,
            job.options,
            job.tally.good,
            job.run.error_code,
            job.run.error_message,
        )

    def job_results(self, job_id: str, *, tenant: str = "default") -> list[JobResult]:
        """The results of a job that succeeded, in order; none of any other."""
        view, results, after = self._jobs.view(tenant, job_id), list[JobResult](), (-1, -1)
        while page := self._jobs.results(view, after=after, limit=PAGE):
            results += [JobResult.of(each) for each in page if each.good]
            after = (page[-1].slice, page[-1].position)
        return results

    def run_until_idle(self, *, patience: float = 60.0) -> list[TaskResult]:
        """All that is due, or falls due within `patience` seconds, was done here; how each task ended."""
        return [
            TaskResult(
                done.claim.kind,
                done.claim.subject,
                done.claim.generation,
                done.claim.ordinal,
                done.ending.value,
                done.reason,
            )
            for done in self._engine.run_until_idle(patience=patience)
        ]

    def read(self, kind: str, subject: str, *, tenant: str = "default") -> SubjectState | None:
        """How the subject stands; None when nobody ever requested it."""
        head = reads.head(self._database, tenant, kind, subject)
        if head is None:
            return None
        detail = None if head.run_id is None else reads.run(self._database, head.run_id)
        return SubjectState(
            kind,
            subject,
            head.status.value,
            head.generation,
            head.published_generation,
            head.visible,
            None if detail is None else detail.run.error_code,
            None if detail is None else detail.run.error_message,
        )

    def visible_chunks(self, kind: str, subject: str, *, tenant: str = "default") -> list[Chunk]:
        """The chunks that readers see, all of one generation, in order; none when nothing is published."""
        head = reads.head(self._database, tenant, kind, subject)
        if head is None:
            return []
        chunks: list[Chunk] = []
        generation, after = None, (-1, -1)
        while (page := reads.visible_chunks(self._database, head.id, after=after, limit=PAGE)) is not None:
            if generation not in {None, page.generation}:  # published meanwhile: begin again
                chunks, generation, after = [], None, (-1, -1)
                continue
            chunks += [each.chunk for each in page.chunks]
            if len(page.chunks) < PAGE:
                return chunks
            generation, after = page.generation, (page.chunks[-1].slice, page.chunks[-1].chunk.position)
        return []

    def cancel(self, kind: str, subject: str, *, tenant: str = "default") -> bool:
        """The live run has ended, and what is published stays; False when none was live."""
        head = reads.head(self._database, tenant, kind, subject)
        if head is None:
            raise NotFoundError(f"{kind} of {subject} was never requested for tenant {tenant}")
        return isinstance(self._engine.cancel(head.id), Landed)

    def delete(self, subject: str, *, tenant: str = "default") -> bool:
        """Nothing of the subject is visible or running any more, in any kind; False when nothing was."""
        return bool(self._engine.delete(tenant, subject))

    def close(self) -> None:
        """The connections to the database are closed. Providers are the caller's to close."""
        self._engine.watchdog.stop()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open(  # noqa: A001 - read as holdfast.open
    url: str = "sqlite:///holdfast.db",
    *,
    kinds: Sequence[Kind] = (),
    providers: Mapping[str, Provider] | None = None,
    supplies: Supplies | None = None,
    migrate: bool = True,
) -> Holdfast:
    """A `Holdfast` on the database at `url`, whose tables are there and are those of this release.

    `supplies` names the model that jobs ask where they do not say, by default the built-in stand-in. With
    `migrate` false nothing is created or changed: a database at another revision is a SchemaError that says
    what to do. Raises StoreUnavailableError when the database does not answer.
    """
    with answering("the database is unreachable ({}); check that it is running and that its URL is correct"):
        if migrate:
            from holdfast.store.base import migrate as migrations  # noqa: PLC0415 (Alembic, if it is needed)

            migrations.upgrade(url)
        elif (file := dialect.sqlite_file(url)) is not None and not file.exists():
            raise SchemaError(f"there is no database at {file}; omit migrate=False to create it")
        with contextlib.ExitStack() as undo:
            database = undo.enter_context(contextlib.closing(open_database(url)))
            revisions.check(database.engine)
            hold = Holdfast(database, kinds, providers or {}, supplies)
            undo.pop_all()
        return hold
