"""Import: documents that another system indexed become heads here; no work is said to have been done here.

An active document becomes `success` with generation 1, published and marked imported: it has no chunks until
somebody asks for it, and the repair of missing chunks leaves it alone till then. Any other becomes `idle`
(shown as not_indexed). A head that exists is never touched, so an import may be run again, or while people
already work with what it brought.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, column, create_engine, exc, insert, inspect, select, table
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql.elements import quoted_name

from holdfast.core.errors import BadRequestError
from holdfast.core.records import Ask
from holdfast.core.states import Disposition, Lane, Status, Verb
from holdfast.store import dialect, journal, publish_seq
from holdfast.store.database import Database, Tx
from holdfast.store.dialect import now
from holdfast.store.schema import heads, runs

BATCH = 500
TRUE_WORDS = frozenset({"1", "t", "true", "y", "yes"})
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: heads made as success, heads made as idle, and documents that had a head."""

    active: int = 0
    idle: int = 0
    existing: int = 0

    def __add__(self, other: "Imported") -> "Imported":
        """The sum, field by field."""
        return Imported(self.active + other.active, self.idle + other.idle, self.existing + other.existing)


NEW_HEADS = (
    upsert(heads).values(updated_at=now()).on_conflict_do_nothing().returning(heads.c.id, heads.c.subject)
)
NEW_RUNS = insert(runs).values(queued_at=now(), finished_at=now())


def import_documents(
    db: Database,
    rows: Iterable[tuple[Any, Any]],
    *,
    tenant: str,
    kind: str = "index",
    collection: str | None = None,
    actor: str = "",
) -> Imported:
    """Every (id, is_active) of `rows` has a head `document:<id>`; those that had one are as they were."""
    total, source = Imported(), iter(rows)
    while batch := list(islice(source, BATCH)):
        asks: dict[str, Ask] = {}
        active: dict[str, str | None] = {}
        for document_id, is_active in batch:
            ask = Ask(
                kind, f"document:{document_id}", tenant=tenant, collection=collection, actor=actor
            ).checked()
            asks.setdefault(ask.subject, ask)
            active.setdefault(ask.subject, db.token() if _is_true(is_active) else None)
        made = _import_batch(db, asks, active)
        total += Imported(made.active, made.idle, len(batch) - made.active - made.idle)
    return total


def _is_true(value: object) -> bool:
    """True for what databases without a boolean type keep as true, too."""
    return str(value).strip().lower() in TRUE_WORDS


def _import_batch(db: Database, asks: dict[str, Ask], run_ids: dict[str, str | None]) -> Imported:
    """One batch in one transaction. `run_ids` are the runs of the active documents, drawn before any try."""
    made: set[str] = set()  # over all tries: after a lost answer the second finds the heads of the first

    def body(tx: Tx) -> None:
        # Sorted, so that two imports at once meet the unique index in the same order.
        new = tx.execute(NEW_HEADS, [_head(asks[name], run_ids[name]) for name in sorted(asks)]).all()
        made.update(row.subject for row in new)
        active = [(row.id, asks[row.subject], run_ids[row.subject]) for row in new if run_ids[row.subject]]
        if active:
            tx.execute(NEW_RUNS, [_run(head_id, ask, run_id) for head_id, ask, run_id in active])
            publish_seq.bump(tx, active[0][1].tenant, active[0][1].collection)
        if new:
            tx.execute(journal.WRITE, [_note(row.id, asks[row.subject], run_ids[row.subject]) for row in new])

    db.write("import", body)
    active = sum(run_ids[name] is not None for name in made)
    return Imported(active, len(made) - active)


def _head(ask: Ask, run_id: str | None) -> dict[str, Any]:
    active = run_id is not None
    return {
        "tenant": ask.tenant,
        "kind": ask.kind,
        "subject": ask.subject,
        "collection": ask.collection,
        "generation": int(active),
        "published_generation": int(active),
        "status": (Status.SUCCESS if active else Status.IDLE).value,
        "run_id": run_id,
        "fingerprint": "",
        "visible": active,
        "imported": active,
    }


def _run(head_id: int, ask: Ask, run_id: str | None) -> dict[str, Any]:
    return {
        "id": run_id,
        "head_id": head_id,
        "tenant": ask.tenant,
        "kind": ask.kind,
        "subject": ask.subject,
        "generation": 1,
        "status": Status.SUCCESS.value,
        "disposition": Disposition.ACCEPTED.value,
        "reason": "imported",
        "actor": ask.actor,
        "lane": Lane.BULK.value,
        "priority": 0,
        "pipeline": "",
        "content": "",
        "options": {},
        "pruned": True,  # there is nothing below it
    }


def _note(head_id: int, ask: Ask, run_id: str | None) -> dict[str, Any]:
    return journal.entry(
        Verb.IMPORT,
        "active" if run_id else "not_active",
        tenant=ask.tenant,
        head_id=head_id,
        run_id=run_id,
        generation=int(run_id is not None),
        actor=ask.actor,
    )


def read_documents(
    url: str, table_name: str = "documents", id_column: str = "id", active_column: str = "is_active"
) -> Iterator[tuple[Any, Any]]:
    """(id, is_active) of every row of a table in somebody's database, streamed and in one snapshot.

    The database is only read, and none of its settings is changed.
    """
    schema, name = _identifiers(table_name, id_column, active_column)
    engine = _open_read_only(url)
    try:
        with engine.connect() as connection:
            _check_columns(connection, schema, name, (id_column, active_column))
            source = table(
                quoted_name(name, quote=True),
                *(column(quoted_name(one, quote=True)) for one in (id_column, active_column)),
                schema=quoted_name(schema, quote=True) if schema else None,
            )
            streamed = connection.execution_options(yield_per=BATCH).execute(select(*source.columns))
            for row in streamed:
                yield row[0], row[1]
    except exc.OperationalError as error:
        message = f"the database to import from cannot be read ({error.orig}); check its address"
        raise BadRequestError(message, code="import_unreadable") from error
    finally:
        engine.dispose()


def _identifiers(table_name: str, *columns: str) -> tuple[str | None, str]:
    parts = table_name.split(".")
    for name in (*parts, *columns):
        if len(parts) > 2 or not IDENTIFIER.fullmatch(name):
            message = f"{name!r} is no name of a table or column; use letters, digits and _, like documents"
            raise BadRequestError(message, code="bad_identifier")
    return (parts[0] if len(parts) == 2 else None), parts[-1]


def _open_read_only(url: str) -> Engine:
    parsed = dialect.parse(url)
    if parsed.drivername == "sqlite":
        if not parsed.database:
            raise BadRequestError("name the SQLite file: sqlite:///path", code="bad_database_url")
        return create_engine(
            parsed.set(database=f"file:{quote(parsed.database)}", query={"mode": "ro", "uri": "true"})
        )
    engine = create_engine(parsed, connect_args={"connect_timeout": 10, "application_name": "holdfast"})
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def _check_columns(connection: Connection, schema: str | None, name: str, wanted: Iterable[str]) -> None:
    inspector = inspect(connection)
    if not inspector.has_table(name, schema=schema):
        message = f"there is no table {name!r} in the database to import from; name it with --table"
        raise BadRequestError(message, code="table_missing")
    known = {found["name"] for found in inspector.get_columns(name, schema=schema)}
    for one in wanted:
        if one not in known:
            message = f"table {name!r} has no column {one!r}; it has {', '.join(sorted(known))}"
            raise BadRequestError(message, code="column_missing")
