"""What the latest successful jobs of a kind left, over a whole collection: for a search, in its snapshot."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, bindparam, select

from holdfast.core.states import Status
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import heads, job_results, runs
from holdfast.store.jobs.job_results import LIVE_DOCUMENT, StoredResult
from holdfast.store.jobs.jobs import are_jobs

MOST = 10_000
MOST_JOBS = 500

# Two statements: asked for both at once, SQLite begins with the results of everybody.
JOBS_OF_KIND = (
    select(runs.c.id)
    .select_from(
        heads.join(
            runs, and_(runs.c.head_id == heads.c.id, runs.c.generation == heads.c.published_generation)
        )
    )
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.collection == bindparam("collection"),
        *are_jobs(heads),
        heads.c.kind == bindparam("kind"),
        heads.c.visible,
        runs.c.status == literal(Status.SUCCESS),
    )
    .limit(MOST_JOBS)
)
OF_JOBS = (
    select(*(job_results.c[name] for name in StoredResult.__dataclass_fields__))
    .where(
        key_in(job_results.c.run_id, bindparam("jobs", type_=KeyList())), job_results.c.good, LIVE_DOCUMENT
    )
    .limit(MOST)
)
OF_DOCUMENTS = OF_JOBS.where(key_in(job_results.c.document, bindparam("documents", type_=KeyList())))


def of_kind(
    tx: Tx, tenant: str, collection: str, kind: str, documents: Sequence[str] | None = None
) -> list[StoredResult]:
    """The results that readers see now, of these documents alone where given.

    Of at most MOST_JOBS jobs, and at most MOST of them.
    """
    values = {"tenant": tenant, "collection": collection, "kind": kind}
    jobs = [row.id for row in tx.all(JOBS_OF_KIND, values)]
    if not jobs:
        return []
    filters: dict[str, Any] = {"jobs": jobs}
    if documents is None:
        return [StoredResult(**row._asdict()) for row in tx.all(OF_JOBS, filters)]
    return [
        StoredResult(**row._asdict())
        for row in tx.all(OF_DOCUMENTS, filters | {"documents": list(documents)})
    ]
