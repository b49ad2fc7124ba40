"""Job results: written with the slice that produced them, read by the job's id after the job has succeeded.

Results belong to their run and are deleted when its history is pruned. A later job on the same subject
removes nothing. Results taken from a document are deleted with the document, and all of them with the
subject: readers stop seeing them at once, and the rows are deleted when the sweep prunes the deletion.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, case, delete, exists, func, insert, select, tuple_, update

from holdfast.core import subjects
from holdfast.core.records import Claim, Head, RunRecord
from holdfast.core.states import Status
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import documents, job_results, runs

DELETED = "delete"


@dataclass(frozen=True, slots=True)
class ResultDraft:
    """A result about to be stored. `mark` identifies duplicates; `data` is JSON."""

    document: str
    source: int
    data: Mapping[str, Any]
    page: int | None = None
    chunk: int | None = None
    mark: str | None = None
    good: bool = True


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result and its position: (slice, position) orders the results of a job."""

    slice: int
    position: int
    document: str
    source: int
    page: int | None
    chunk: int | None
    good: bool
    data: Mapping[str, Any]


KEEP = insert(job_results)


def keep(tx: Tx, claim: Claim, drafts: Sequence[ResultDraft]) -> None:
    """The results of a slice are stored in the transaction that finishes it, which is their fence."""
    if drafts:
        slice_key = {"run_id": claim.run_id, "slice": claim.ordinal}
        owner = {"tenant": claim.tenant, "head_id": claim.head_id}
        tx.execute(
            KEEP,
            [
                slice_key
                | owner
                | {"position": number, "document": each.document, "source": each.source, "page": each.page}
                | {"chunk": each.chunk, "mark": each.mark, "good": each.good, "data": dict(each.data)}
                for number, each in enumerate(drafts)
            ],
        )


LIVE_DOCUMENT = exists().where(
    documents.c.tenant == job_results.c.tenant,
    documents.c.id == job_results.c.document,
    ~documents.c.deleted,
)
_good = case((job_results.c.good, 1), else_=0)
_earlier = job_results.alias("earlier")
_of_run = job_results.c.run_id == bindparam("b_run")
DROP_GONE = delete(job_results).where(_of_run, ~LIVE_DOCUMENT)
DROP_TWINS = delete(job_results).where(
    _of_run,
    job_results.c.mark.is_not(None),
    exists().where(
        _earlier.c.run_id == job_results.c.run_id,
        _earlier.c.mark == job_results.c.mark,
        tuple_(_earlier.c.slice, _earlier.c.position) < tuple_(job_results.c.slice, job_results.c.position),
    ),
)
FIRST_TOO_MANY = (
    select(job_results.c.slice, job_results.c.position)
    .where(job_results.c.run_id == bindparam("run_id"))
    .order_by(job_results.c.slice, job_results.c.position)
    .offset(bindparam("limit"))
    .limit(1)
)
DROP_FROM = delete(job_results).where(
    _of_run,
    tuple_(job_results.c.slice, job_results.c.position)
    >= tuple_(bindparam("b_slice"), bindparam("b_position")),
)
COUNT = select(
    func.count().label("all"),
    func.coalesce(func.sum(_good), 0).label("good"),
).where(job_results.c.run_id == bindparam("run_id"))


TELL = update(runs).where(runs.c.id == bindparam("b_run")).values(result=bindparam("b_result"))


@dataclass(frozen=True, slots=True)
class ResultCounts:
    """How many results a job had when it succeeded, and how many of them are good."""

    results: int = 0
    good: int = 0


def collect(tx: Tx, run_id: str, *, limit: int | None = None) -> ResultCounts:
    """Of equal results only the first is left, none of a deleted document, and no more than `limit`.

    Their number is stored with the run, as a list of jobs must not count the results of each. For the
    transaction that publishes: under the head's lock no slice can add to them.
    """
    tx.execute(DROP_GONE, {"b_run": run_id})
    tx.execute(DROP_TWINS, {"b_run": run_id})
    if limit is not None:
        first = tx.one(FIRST_TOO_MANY, {"run_id": run_id, "limit": limit})
        if first is not None:
            tx.execute(DROP_FROM, {"b_run": run_id, "b_slice": first.slice, "b_position": first.position})
    row = tx.execute(COUNT, {"run_id": run_id}).one()
    tally = ResultCounts(int(row.all), int(row.good))
    tx.execute(TELL, {"b_run": run_id, "b_result": dataclasses.asdict(tally)})
    return tally


MARKS = select(job_results.c.mark).where(
    job_results.c.run_id == bindparam("run_id"),
    job_results.c.slice != bindparam("slice"),
    key_in(job_results.c.mark, bindparam("marks", type_=KeyList())),
)


def marks(db: Database, claim: Claim, candidates: Collection[str]) -> set[str]:
    """The marks among these that finished slices of the same run have stored already."""
    values = {"run_id": claim.run_id, "slice": claim.ordinal, "marks": list(candidates)}
    return {row.mark for row in db.read(lambda tx: tx.all(MARKS, values))} if candidates else set()


_deletion = runs.alias("deletion")
STANDS = and_(
    runs.c.reason != literal(DELETED),
    ~exists().where(
        _deletion.c.head_id == runs.c.head_id,
        _deletion.c.generation > runs.c.generation,
        _deletion.c.reason == literal(DELETED),
    ),
)
"""A run that is no deletion and whose subject was not deleted since."""

_readable = (
    job_results.c.run_id == runs.c.id,
    runs.c.status == literal(Status.SUCCESS),
    STANDS,
    LIVE_DOCUMENT,
)
PAGE = (
    select(*(job_results.c[name] for name in StoredResult.__dataclass_fields__))
    .where(
        *_readable,
        runs.c.id == bindparam("run_id"),
        runs.c.tenant == bindparam("tenant"),
        tuple_(job_results.c.slice, job_results.c.position)
        > tuple_(bindparam("slice"), bindparam("position")),
    )
    .order_by(job_results.c.slice, job_results.c.position)
    .limit(bindparam("limit"))
)


def page(
    db: Database, tenant: str, run_id: str, *, after: tuple[int, int] = (-1, -1), limit: int = 100
) -> list[StoredResult]:
    """The results of a job that succeeded, after (slice, position) `after`; none of any other job."""
    values = {"tenant": tenant, "run_id": run_id, "slice": after[0], "position": after[1], "limit": limit}
    return [StoredResult(**row._asdict()) for row in db.read(lambda tx: tx.all(PAGE, values))]


DROP_RUN = delete(job_results).where(_of_run)
DROP_BELOW = delete(job_results).where(
    job_results.c.head_id == bindparam("b_head"),
    job_results.c.run_id.in_(
        select(runs.c.id).where(
            runs.c.head_id == bindparam("b_head"), runs.c.generation < bindparam("b_generation")
        )
    ),
)
DROP_DOCUMENT = delete(job_results).where(
    job_results.c.tenant == bindparam("b_tenant"),
    job_results.c.document == bindparam("b_document"),
    ~LIVE_DOCUMENT,
)


def prune(tx: Tx, head: Head, run: RunRecord) -> None:
    """What the end of this run made obsolete is deleted: its own results, a document's, or a subject's."""
    if run.status is not Status.SUCCESS:
        tx.execute(DROP_RUN, {"b_run": run.id})
    elif head.kind == subjects.INDEX and not head.visible:
        document = subjects.document_id(head.subject)
        tx.execute(DROP_DOCUMENT, {"b_tenant": head.tenant, "b_document": document})
    elif not run.pipeline:  # only a deletion has none
        tx.execute(DROP_BELOW, {"b_head": head.id, "b_generation": run.generation})
