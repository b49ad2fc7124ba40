"""What the outline of a document is read from: its table of contents, its chunks, its tree of summaries."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, bindparam, func, select

from holdfast.core import subjects
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in
from holdfast.store.base.schema import chunks, derived_nodes, derived_sources, documents, heads
from holdfast.store.derived.inputs import CURRENT


@dataclass(frozen=True, slots=True)
class OutlineChunk:
    """A chunk by its number, with the headings above it, outermost first."""

    number: int
    page: int | None
    text: str
    headings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SummaryTitle:
    """The title of a summary and the chunks that it is of."""

    title: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class OutlineParts:
    """Of one generation of a document: its entries (level, title, page), chunks and titles of summaries."""

    title: str
    entries: Sequence[tuple[int, str, int]]
    chunks: Sequence[OutlineChunk]
    summaries: Sequence[SummaryTitle]


CONTENTS = select(documents.c.title, documents.c.outline, documents.c.collection).where(
    documents.c.tenant == bindparam("tenant"), documents.c.id == bindparam("document")
)
CHUNKS = (
    select(chunks.c.page, chunks.c.text, chunks.c.data)
    .where(chunks.c.head_id == bindparam("head_id"), chunks.c.generation == bindparam("generation"))
    .order_by(chunks.c.slice, chunks.c.position)
)
# The lowest level: its titles say most. Only of this version: the numbers of chunks are those of a version.
SUMMARIES = (
    select(
        derived_nodes.c.title,
        func.min(derived_sources.c.first).label("first"),
        func.max(derived_sources.c.last).label("last"),
    )
    .select_from(
        heads.join(
            derived_nodes,
            and_(
                derived_nodes.c.head_id == heads.c.id,
                derived_nodes.c.generation == heads.c.published_generation,
            ),
        ).join(
            derived_sources,
            and_(
                derived_sources.c.head_id == derived_nodes.c.head_id,
                derived_sources.c.generation == derived_nodes.c.generation,
                derived_sources.c.node == derived_nodes.c.key,
            ),
        )
    )
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.kind == bindparam("kind"),
        heads.c.subject == bindparam("subject"),
        heads.c.visible,
        derived_nodes.c.document == bindparam("document"),
        derived_nodes.c.level == 1,
        derived_sources.c.version == bindparam("version"),
    )
    .group_by(derived_nodes.c.key, derived_nodes.c.title)
    .order_by(func.min(derived_sources.c.first))
)


def parts_of(
    db: Database, tenant: str, document: str, head_id: int, generation: int, *, summaries: str
) -> OutlineParts | None:
    """What the outline is made of; None if the generation is no longer the published one.

    `summaries` is the kind whose titles are read.
    """
    version = {"head_id": head_id, "generation": generation}

    def body(tx: Tx) -> OutlineParts | None:
        row = tx.one(CONTENTS, {"tenant": tenant, "document": document})
        if row is None or tx.one(CURRENT, version) is None:
            return None
        pieces = [
            OutlineChunk(number, each.page, each.text, _headings(each.data))
            for number, each in enumerate(tx.all(CHUNKS, version))
        ]
        about = {"tenant": tenant, "kind": summaries, "document": document, "version": generation}
        titles: list[SummaryTitle] = []
        for subject in (subjects.of_document(document), f"collection:{row.collection}"):
            titles = titles or [
                SummaryTitle(each.title, each.first, each.last)
                for each in tx.all(SUMMARIES, about | {"subject": subject})
            ]
        entries = [(int(level), str(title), int(page)) for level, title, page in row.outline or ()]
        return OutlineParts(row.title, entries, pieces, titles)

    return db.read(body)


def _headings(data: object) -> tuple[str, ...]:
    headings = data.get("headings") if isinstance(data, dict) else None
    return tuple(map(str, headings)) if isinstance(headings, list) else ()


TITLES = select(documents.c.id, documents.c.title).where(
    documents.c.tenant == bindparam("tenant"), key_in(documents.c.id, bindparam("ids", type_=KeyList()))
)


def titles_of(db: Database, tenant: str, ids: Sequence[str]) -> dict[str, str]:
    """The titles of these documents."""
    rows = db.read(lambda tx: tx.all(TITLES, {"tenant": tenant, "ids": list(ids)}))
    return {row.id: row.title for row in rows}
