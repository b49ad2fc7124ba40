"""What the latest successful jobs of a kind left, over a whole collection: for a search, in its snapshot."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, bindparam, select

from holdfast.core.states import Status
from holdfast.store.base.database import Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import heads, job_results, runs
from holdfast.store.jobs.job_results import LIVE_DOCUMENT, StoredResult
from holdfast.store.jobs.jobs import are_jobs

MOST = 10_000

OF_KIND: Select[Any] = (
    select(*(job_results.c[name] for name in StoredResult.__dataclass_fields__))
    .select_from(
        heads.join(runs, runs.c.head_id == heads.c.id).join(job_results, job_results.c.run_id == runs.c.id)
    )
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.collection == bindparam("collection"),
        *are_jobs(heads),
        heads.c.kind == bindparam("kind"),
        heads.c.visible,
        runs.c.generation == heads.c.published_generation,
        runs.c.status == literal(Status.SUCCESS),
        job_results.c.good,
        LIVE_DOCUMENT,
    )
    .order_by(job_results.c.run_id, job_results.c.slice, job_results.c.position)
    .limit(MOST)
)
OF_DOCUMENTS = OF_KIND.where(key_in(job_results.c.document, bindparam("documents", type_=KeyList())))


def of_kind(
    tx: Tx, tenant: str, collection: str, kind: str, documents: Sequence[str] | None = None
) -> list[StoredResult]:
    """The results that readers see now, of these documents alone where given; at most MOST of them."""
    values: dict[str, Any] = {"tenant": tenant, "collection": collection, "kind": kind}
    if documents is None:
        return [StoredResult(**row._asdict()) for row in tx.all(OF_KIND, values)]
    rows = tx.all(OF_DOCUMENTS, values | {"documents": list(documents)})
    return [StoredResult(**row._asdict()) for row in rows]
