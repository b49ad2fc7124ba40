"""Jobs: requested runs other than `index`. How they are requested and listed.

A subject has at most one live job of a kind. While there is one, a second request is a duplicate even if it
asks for something else: the results of the first are being paid for, and a caller who wants others says so
(`replace`).
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, bindparam, case, func, literal_column, select, tuple_

from holdfast.core import decide
from holdfast.core.errors import NotFoundError
from holdfast.core.records import Ask, RequestResult, RunRecord
from holdfast.core.states import LIVE, Status, TaskState
from holdfast.store.base import rows
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import Numbers, key_in
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import A_JOB, collections, documents, heads, runs, tasks
from holdfast.store.jobs.job_results import STANDS, ResultCounts
from holdfast.store.protocol import generations, requests

# A deletion waits for this lock and then looks for work to end: a job cannot slip in between.
COLLECTION_STAYS = (
    select(collections.c.id)
    .where(
        collections.c.tenant == bindparam("tenant"),
        collections.c.id == bindparam("id"),
        ~collections.c.deleted,
    )
    .with_for_update(read=True)
)
DOCUMENT_STAYS = (
    select(documents.c.id)
    .where(documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("id"), ~documents.c.deleted)
    .with_for_update(read=True)
)
STAYS = {"collection": COLLECTION_STAYS, "document": DOCUMENT_STAYS}
ASKED = select(runs.c.content, runs.c.options, runs.c.pipeline).where(runs.c.id == bindparam("run_id"))


def request(
    db: Database, ask: Ask, *, run_id: str, patience: decide.SilenceLimits, replace: bool
) -> RequestResult:
    """The result of a request for a job; NotFoundError if its subject does not exist (any more)."""

    def body(tx: Tx) -> RequestResult:
        head, at = generations.locked_head(tx, ask)
        subject_type, _, name = ask.subject.partition(":")
        if tx.one(STAYS[subject_type], {"tenant": ask.tenant, "id": name}) is None:
            raise NotFoundError(f"there is no {subject_type} {name!r}; it was deleted")
        same_or_other = ask
        run, life, _age = requests.latest(tx, head)
        if not replace and run is not None and run.status in LIVE and run.id != run_id:
            other = tx.one(ASKED, {"run_id": run.id})
            if other is not None and decide.silence(run, life, patience, at) is None:
                same_or_other = dataclasses.replace(
                    ask, content=other.content, options=other.options, pipeline=other.pipeline
                )
        return requests.answer(tx, same_or_other, run_id=run_id, patience=patience)

    return db.write("request", body)


@dataclass(frozen=True, slots=True)
class Job:
    """A job as requested, its outcome, and how many results it has.

    `about` is the title of its subject.
    """

    run: RunRecord
    collection: str | None
    about: str
    actor: str
    reason: str
    options: Mapping[str, Any]
    tally: ResultCounts
    result: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def _title(table: Table, prefix: str) -> ColumnElement[str]:
    """The title of the row of `table` whose id follows the `prefix` of a run's subject."""
    behind = func.substr(runs.c.subject, len(prefix) + 1)
    return (
        select(table.c.title).where(table.c.tenant == runs.c.tenant, table.c.id == behind).scalar_subquery()
    )


def are_jobs(table: Table) -> list[ColumnElement[Any]]:
    """The rows of `table` that are jobs, written as in its index."""
    return [literal_column(re.sub(r"\b(kind|subject)\b", rf"{table.name}.\1", each)) for each in A_JOB]


_requested = (
    select(
        *rows.RUN_COLUMNS,
        runs.c.actor,
        runs.c.reason,
        runs.c.options,
        runs.c.result,
        heads.c.collection,
        case(
            (runs.c.subject.startswith("collection:"), _title(collections, "collection:")),
            else_=_title(documents, "document:"),
        ).label("about"),
    )
    .select_from(runs.join(heads, heads.c.id == runs.c.head_id))
    .where(STANDS)
)
_job = _requested.where(runs.c.tenant == bindparam("tenant"), *are_jobs(runs))
ONE = _job.where(runs.c.id == bindparam("run_id"))
_AFTER = tuple_(runs.c.queued_at, runs.c.id) < tuple_(bindparam("at"), bindparam("id"))
# If more subjects have jobs, the list of all jobs is scanned: many of them are of the collection.
MOST_HEADS = 500
_in_collection = (heads.c.tenant == bindparam("tenant"), heads.c.collection == bindparam("collection"))
HEADS_OF = select(heads.c.id).where(*_in_collection, *are_jobs(heads)).limit(MOST_HEADS + 1)
# What is true of a head is true of its runs. Stated for those as well, it would lead to the list of all jobs.
_of_heads = _requested.where(*_in_collection, key_in(runs.c.head_id, bindparam("heads", type_=Numbers())))


def one(db: Database, tenant: str, run_id: str) -> Job | None:
    """The job of the tenant with this id."""
    values = {"tenant": tenant, "run_id": run_id}
    jobs = db.read(lambda tx: _jobs(tx.all(ONE, values)))
    return jobs[0] if jobs else None


@dataclass(frozen=True, slots=True)
class JobQuery:
    """Which jobs to list, and after which one."""

    tenant: str
    kind: str | None = None
    collection: str | None = None
    status: str | None = None
    after: tuple[float, str] | None = None
    limit: int = 100


def page(db: Database, filters: JobQuery) -> list[Job]:
    """The jobs that match the filters, newest first."""
    values: dict[str, Any] = {"tenant": filters.tenant}

    def body(tx: Tx) -> list[Job]:
        query: Select[Any] = _job
        if filters.collection is not None:
            values["collection"] = filters.collection
            ids = [row.id for row in tx.all(HEADS_OF, values)]
            if len(ids) <= MOST_HEADS:
                query, values["heads"] = _of_heads, ids
            else:
                query = query.where(_in_collection[1])
        if filters.kind is not None:
            query, values["kind"] = query.where(runs.c.kind == bindparam("kind")), filters.kind
        if filters.status is not None:
            query, values["status"] = query.where(runs.c.status == bindparam("status")), filters.status
        if filters.after is not None:
            query, values["at"], values["id"] = query.where(_AFTER), *filters.after
        query = query.order_by(runs.c.queued_at.desc(), runs.c.id.desc()).limit(filters.limit)
        return _jobs(tx.all(query, values))

    return db.read(body)


def _jobs(listed: Sequence[Any]) -> list[Job]:
    return [
        Job(
            run=rows.run(row),
            collection=row.collection,
            about=row.about or row.subject,
            actor=row.actor,
            reason=row.reason,
            options=row.options,
            tally=_tally(row),
            result=row.result or {},
        )
        for row in listed
    ]


def _tally(row: Any) -> ResultCounts:
    """How many results there are; a job whose result is a file, or documents, has none."""
    counts = row.result if row.status == Status.SUCCESS and row.result else {}
    return ResultCounts(
        **{name: counts[name] for name in ResultCounts.__dataclass_fields__ if name in counts}
    )


SLICE_RESULTS = select(tasks.c.result).where(
    tasks.c.run_id == bindparam("run_id"), tasks.c.state == literal(TaskState.DONE)
)


def slice_results(db: Database, run_id: str) -> list[Mapping[str, Any]]:
    """The results of the finished slices of a job."""
    return [row.result for row in db.read(lambda tx: tx.all(SLICE_RESULTS, {"run_id": run_id})) if row.result]
