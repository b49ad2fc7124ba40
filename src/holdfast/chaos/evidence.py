"""What is left behind after a scenario: the meter's book, and every row that tells of work or money."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from holdfast.store.base import schema
from holdfast.store.base.database import Database, Tx
from holdfast.store.views import reads

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The book (`log`, one entry per exchange) and the tables, read when all was quiet.

    `visible` is what a reader sees, by head: the generation and the texts in order.
    """

    log: Sequence[Row] = ()
    heads: Sequence[Row] = ()
    runs: Sequence[Row] = ()
    tasks: Sequence[Row] = ()
    chunks: Sequence[Row] = ()
    orders: Sequence[Row] = ()
    charges: Sequence[Row] = ()
    journal: Sequence[Row] = ()
    visible: Mapping[int, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def noted(self, verb: str, **where: Any) -> list[Row]:
        """The journal's rows of a verb with these values, oldest first."""
        return [
            row
            for row in self.journal
            if row["verb"] == verb and all(row[name] == value for name, value in where.items())
        ]


_LEFT_OUT = {"orders": {"body", "weights", "scopes"}, "chunks": {"data", "page"}}


def gather(db: Database, log: Sequence[Row] = ()) -> Evidence:
    """Everything, as of one moment in the database."""
    names = ("heads", "runs", "tasks", "chunks", "orders", "charges", "journal")

    def body(tx: Tx) -> dict[str, list[Row]]:
        return {name: [dict(row._mapping) for row in tx.all(_everything(name))] for name in names}

    tables = db.read(body)
    visible = {row["id"]: seen for row in tables["heads"] if (seen := _seen(db, row["id"])) is not None}
    return Evidence(log=log, visible=visible, **tables)


def rows(db: Database, name: str, **where: Any) -> list[Any]:
    """The rows of a table with these values, by their keys."""
    table = schema.metadata.tables[f"holdfast_{name}"]
    query = select(table).where(*(table.c[column] == value for column, value in where.items()))
    return list(db.read(lambda tx: tx.all(query.order_by(*table.primary_key))))


def _everything(name: str) -> Any:
    table = schema.metadata.tables[f"holdfast_{name}"]
    query = select(*(column for column in table.c if column.name not in _LEFT_OUT.get(name, ())))
    return query.order_by(*table.primary_key.columns)


def _seen(db: Database, head_id: int) -> tuple[int, tuple[str, ...]] | None:
    texts: list[str] = []
    after = (-1, -1)
    while True:
        page = reads.visible_chunks(db, head_id, after=after)
        if page is None:
            return None
        if not page.chunks:
            return page.generation, tuple(texts)
        texts += [each.chunk.text for each in page.chunks]
        after = (page.chunks[-1].slice, page.chunks[-1].chunk.position)
