"""What is missing from published documents, and which bytes are no longer needed."""

from dataclasses import dataclass

from sqlalchemy import bindparam, exists, func, select, text

from holdfast.core import subjects
from holdfast.core.records import Copy
from holdfast.core.states import LIVE, CallState, Status
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import in_usual_order
from holdfast.store.base.schema import calls, chunks, documents, heads, one_of, runs

# A few heads first, by number alone: joined with all documents before that, every round would read all.
_page = (
    select(heads.c.id, heads.c.tenant, heads.c.subject, heads.c.published_generation)
    .where(
        heads.c.id > bindparam("after"),
        heads.c.kind == subjects.INDEX,
        heads.c.visible,
        ~heads.c.imported,
        heads.c.status == Status.SUCCESS.value,
    )
    .order_by(heads.c.id)
    .limit(bindparam("limit"))
    .subquery("page")
)
# Correlated by name: otherwise a condition two levels deep on a page subquery reads its own copy, all of it
# for every chunk, and any tenant's call counts as present.
_vector = (
    exists()
    .where(
        calls.c.tenant == _page.c.tenant,
        calls.c.key == chunks.c.call_key,
        calls.c.state == CallState.SETTLED.value,
    )
    .correlate(_page, chunks)
)
_published = (chunks.c.head_id == _page.c.id) & (chunks.c.generation == _page.c.published_generation)
_here = select(func.count()).select_from(chunks).where(_published).correlate(_page).scalar_subquery()
_without_vector = (
    select(func.count())
    .select_from(chunks)
    .where(_published, chunks.c.call_key.is_not(None), ~_vector)
    .correlate(_page)
    .scalar_subquery()
)
_document_id = in_usual_order(func.substr(_page.c.subject, len(subjects.DOCUMENT) + 1))
LOOK = (
    select(
        _page.c.id,
        _page.c.tenant,
        _page.c.subject,
        documents.c.chunks.label("expected"),
        _here.label("present"),
        _without_vector.label("without_vector"),
    )
    .select_from(
        _page.outerjoin(
            documents,
            (documents.c.tenant == _page.c.tenant) & (documents.c.id == _document_id) & ~documents.c.deleted,
        )
    )
    .order_by(_page.c.id)
)


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A published document with something missing."""

    head_id: int
    tenant: str
    subject: str
    missing_chunks: int
    missing_vectors: int


def look(db: Database, *, after: int, limit: int) -> tuple[list[MissingPart], int]:
    """What is missing among `limit` documents after the head `after`; and where to continue, 0 at the end."""
    page = db.read(lambda tx: tx.all(LOOK, {"after": after, "limit": limit}))
    gaps = [
        MissingPart(row.id, row.tenant, row.subject, max(0, row.expected - row.present), row.without_vector)
        for row in page
        if row.expected is not None and (row.present < row.expected or row.without_vector)
    ]
    return gaps, page[-1].id if len(page) == limit else 0


NAMED = select(
    exists().where(documents.c.digest == bindparam("digest"), ~documents.c.deleted),
    exists().where(documents.c.thumbnail == bindparam("digest"), ~documents.c.deleted),
    exists().where(runs.c.content == bindparam("digest"), text(f"holdfast_runs.{one_of('status', LIVE)}")),
)


def is_named(db: Database, digest: str) -> bool:
    """True if a document, or work under way, needs these bytes."""
    return any(db.read(lambda tx: tx.execute(NAMED, {"digest": digest}).one()))


_known = exists().where(
    calls.c.tenant == bindparam("tenant"),
    calls.c.key == chunks.c.call_key,
    calls.c.state == CallState.SETTLED.value,
)
WITHOUT_VECTOR = select(
    exists().where(
        chunks.c.head_id == bindparam("head_id"),
        chunks.c.generation == bindparam("generation"),
        chunks.c.slice == bindparam("slice"),
        chunks.c.call_key.is_not(None),
        ~_known,
    )
)


def has_vectors(db: Database, tenant: str, head_id: int, copy: Copy) -> bool:
    """True if every chunk of an earlier slice still has its vector, so that the slice may be reused."""
    values = {"tenant": tenant, "head_id": head_id, "generation": copy.generation, "slice": copy.slice}
    return not db.read(lambda tx: tx.execute(WITHOUT_VECTOR, values).scalar())
