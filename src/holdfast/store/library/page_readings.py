"""How each page of a published document was read, from the results of its slices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, select

from holdfast.core import subjects
from holdfast.core.states import TaskState
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import heads, runs, tasks

SLICES_AT_ONCE = 50

SLICES = (
    select(heads.c.published_generation, tasks.c.ordinal, tasks.c.result)
    .select_from(
        heads.join(
            runs, (runs.c.head_id == heads.c.id) & (runs.c.generation == heads.c.published_generation)
        ).join(tasks, tasks.c.run_id == runs.c.id)
    )
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.kind == subjects.INDEX,
        heads.c.subject == bindparam("subject"),
        heads.c.visible,
        tasks.c.state == literal(TaskState.DONE),
        tasks.c.ordinal >= bindparam("ordinal"),
    )
    .order_by(tasks.c.ordinal)
    .limit(SLICES_AT_ONCE)
)


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page: where its text comes from, the confidence of OCR, why it is a gap, and how many words it has.

    `slice` is the ordinal of the task that read it.
    """

    slice: int
    page: int
    quality: str
    confidence: int | None
    gap: str | None
    words: int


@dataclass(frozen=True, slots=True)
class ReadPages:
    """Pages of the published generation, in order."""

    generation: int
    pages: tuple[ReadPage, ...]


def pages(
    db: Database, tenant: str, document_id: str, *, after: tuple[int, int] = (-1, 0), limit: int
) -> ReadPages:
    """The pages after this one, by slice and page, of the generation that one snapshot shows as published."""

    def body(tx: Tx) -> ReadPages:
        generation, ordinal, listed = 0, max(0, after[0]), list[ReadPage]()
        while len(listed) < limit:
            values = {"tenant": tenant, "subject": subjects.of_document(document_id), "ordinal": ordinal}
            rows = tx.all(SLICES, values)
            for row in rows:
                generation = row.published_generation
                listed += [
                    page
                    for page in of_slice(row.ordinal, row.result or {})
                    if (page.slice, page.page) > after
                ]
            if len(rows) < SLICES_AT_ONCE:
                break
            ordinal = rows[-1].ordinal + 1
        return ReadPages(generation, tuple(listed[:limit]))

    return db.read(body)


def of_slice(ordinal: int, result: Mapping[str, Any]) -> Iterator[ReadPage]:
    """The pages in the result of a slice; none of rows, and of a slice that an earlier release wrote."""
    readings = {page: rest for page, *rest in result.get("readings", ())}
    for page, words in result.get("page_words", ()):
        quality, confidence, gap = readings.get(page, ("text" if words else "empty", None, None))
        yield ReadPage(ordinal, page, quality, confidence, gap, words)
