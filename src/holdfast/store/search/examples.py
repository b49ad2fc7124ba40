"""What search needs of a document, or of one of its chunks, to find others like it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, select

from holdfast.core import subjects
from holdfast.store.base.database import Tx
from holdfast.store.base.schema import calls, chunks, heads

MOST_CHUNKS = 200  # of a document; what follows is more of the same


@dataclass(frozen=True, slots=True)
class ExampleVector:
    """A stored embedding, and who made it."""

    provider: str
    model: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Example:
    """Terms of each chunk, separated by spaces, and their vectors."""

    head_id: int
    words: Sequence[str]
    vectors: Sequence[ExampleVector]


_chunks = (
    select(heads.c.id, chunks.c.words, calls.c.provider, calls.c.model, calls.c.result)
    .select_from(
        heads.join(
            chunks, (chunks.c.head_id == heads.c.id) & (chunks.c.generation == heads.c.published_generation)
        ).outerjoin(calls, (calls.c.tenant == heads.c.tenant) & (calls.c.key == chunks.c.call_key))
    )
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.kind == subjects.INDEX,
        heads.c.subject == bindparam("subject"),
        heads.c.visible,
    )
)
OF_DOCUMENT = _chunks.order_by(chunks.c.slice, chunks.c.epoch, chunks.c.position).limit(MOST_CHUNKS)
OF_CHUNK = _chunks.where(
    chunks.c.slice == bindparam("slice"), chunks.c.position == bindparam("position")
).limit(1)


def example(tx: Tx, tenant: str, document_id: str, at: tuple[int, int] | None) -> Example | None:
    """The published document, or its chunk at (slice, position); None if there is nothing."""
    values: dict[str, object] = {"tenant": tenant, "subject": subjects.of_document(document_id)}
    if at is not None:
        values |= {"slice": at[0], "position": at[1]}
    rows = tx.in_binary(OF_DOCUMENT if at is None else OF_CHUNK, values)
    if not rows:
        return None
    vectors = [ExampleVector(row.provider, row.model, bytes(row.result)) for row in rows if row.result]
    return Example(rows[0].id, [row.words or "" for row in rows], vectors)
