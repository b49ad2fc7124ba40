"""Import: documents indexed by another system become documents here, without claiming work done here.

An active document becomes `success` with generation 1, published and marked imported: it has no chunks until
it is requested, and the repair of missing chunks ignores it until then. Any other becomes `idle` (shown as
not_indexed). None has content: it is uploaded, or fetched from its URL, before it is indexed. Existing
documents are never touched, so an import may be run again.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import (
    Connection,
    Engine,
    bindparam,
    column,
    create_engine,
    exc,
    exists,
    func,
    insert,
    inspect,
    or_,
    select,
    table,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql.elements import quoted_name

from holdfast.core import subjects
from holdfast.core.errors import BadRequestError
from holdfast.core.records import TENANT, Ask
from holdfast.core.states import Disposition, Lane, Status, Verb
from holdfast.core.text import plain
from holdfast.store.base import dialect, journal
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, in_usual_order, key_in, now
from holdfast.store.base.schema import documents, heads, runs
from holdfast.store.library import collections, quotas
from holdfast.store.library.documents import DocumentDraft, DocumentSource, row_of
from holdfast.store.library.quotas import UNLIMITED, Quota
from holdfast.store.protocol import publish_seq

BATCH = 500
TRUE_WORDS = frozenset({"1", "t", "true", "y", "yes"})
SOURCE = "imported"
DEFAULT_COLLECTION = "default"
MOST_TITLE = 500
MOST_URL = 4000
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}")


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: heads created as success, heads created as idle, and existing documents."""

    active: int = 0
    idle: int = 0
    existing: int = 0

    def __add__(self, other: "Imported") -> "Imported":
        """The sum, field by field."""
        return Imported(self.active + other.active, self.idle + other.idle, self.existing + other.existing)


class ImportedRow(NamedTuple):
    """A document of the other system; without a title, its id is its title."""

    id: Any
    is_active: Any
    title: Any = None
    url: Any = None


NEW_HEADS = (
    upsert(heads).values(updated_at=now()).on_conflict_do_nothing().returning(heads.c.id, heads.c.subject)
)
NEW_RUNS = insert(runs).values(queued_at=now(), finished_at=now())
NEW_DOCUMENTS = upsert(documents).values(created_at=now(), updated_at=now()).on_conflict_do_nothing()
# Heads imported by a release that created no documents. A deleted one stays deleted.
WITHOUT_DOCUMENT = (
    select(heads.c.id, heads.c.subject)
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.kind == bindparam("kind"),
        key_in(heads.c.subject, bindparam("subjects", type_=KeyList())),
        ~heads.c.deleted,
        or_(heads.c.imported, heads.c.generation == 0),
        ~exists().where(
            documents.c.tenant == heads.c.tenant,
            documents.c.id == in_usual_order(func.substr(heads.c.subject, len(subjects.of_document("")) + 1)),
        ),
    )
    .order_by(heads.c.subject)
    .with_for_update(of=heads)
)
SET_COLLECTION = (
    update(heads)
    .where(heads.c.id == bindparam("b_head"))
    .values(collection=bindparam("b_collection"), updated_at=now())
)


def import_documents(
    db: Database,
    rows: Iterable[tuple[Any, ...]],
    *,
    tenant: str,
    kind: str = subjects.INDEX,
    collection: str | None = None,
    actor: str = "",
    quota: Quota = UNLIMITED,
) -> Imported:
    """Every `ImportedRow` of `rows` is a document with a head; those that had one are unchanged.

    The collection is created if missing. QuotaExceededError if a batch exceeds the tenant's quota, which is
    this one unless it has its own; the batches before it stay.
    """
    collection_id = collection or DEFAULT_COLLECTION
    total, source = Imported(), iter(rows)
    if not collections.make_collection(db, tenant, collection_id, title=collection_id, options={}):
        message = f"collection {collection_id!r} is still being deleted; import again in a moment"
        raise BadRequestError(message, code="collection_emptying")
    while batch := [ImportedRow(*row) for row in islice(source, BATCH)]:
        asks: dict[str, Ask] = {}
        active: dict[str, str | None] = {}
        drafts: dict[str, DocumentDraft] = {}
        for row in batch:
            ask = Ask(kind, _subject(row), tenant=tenant, collection=collection_id, actor=actor).checked()
            asks.setdefault(ask.subject, ask)
            active.setdefault(ask.subject, db.token() if _is_true(row.is_active) else None)
            drafts.setdefault(ask.subject, _draft(row))
        new = _import_batch(db, asks, active, drafts, quota)
        total += Imported(new.active, new.idle, len(batch) - new.active - new.idle)
    return total


def _subject(row: ImportedRow) -> str:
    """The document's subject; BadRequestError for an id that cannot be part of an API URL."""
    if not TENANT.fullmatch(str(row.id)):
        message = (
            f"document:{row.id} cannot be imported: an id has letters, digits, dot, - and _, at most 64; "
            "name another column with --id-column"
        )
        raise BadRequestError(message, code="bad_subject")
    return subjects.of_document(str(row.id))


def _draft(row: ImportedRow) -> DocumentDraft:
    """The document without content: a unique placeholder takes the place of its digest."""
    title = " ".join(plain(str(row.title or "")).split())[:MOST_TITLE]
    url = str(row.url or "").strip()
    if len(url) > MOST_URL or plain(url) != url:
        raise BadRequestError(f"the URL of document {row.id} cannot be stored: {url!r:.80}", code="bad_url")
    return DocumentDraft(
        str(row.id), title or str(row.id), DocumentSource(f"{SOURCE}:{row.id}", 0, SOURCE, url=url or None)
    )


def _is_true(value: object) -> bool:
    """True also for the values that databases without a boolean type use for true."""
    return str(value).strip().lower() in TRUE_WORDS


def _import_batch(
    db: Database,
    asks: dict[str, Ask],
    run_ids: dict[str, str | None],
    drafts: dict[str, DocumentDraft],
    quota: Quota,
) -> Imported:
    """One batch in one transaction. `run_ids` are the runs of the active documents, drawn before any try."""
    tenant, collection = next((ask.tenant, ask.collection or "") for ask in asks.values())
    created: set[str] = set()  # over all tries: a retry after a lost response inserts nothing

    def body(tx: Tx) -> None:
        if tx.one(collections.COLLECTION_KEPT, {"tenant": tenant, "id": collection}) is None:
            raise collections.no_collection(collection)
        # Sorted, so that concurrent imports reach the unique index in the same order.
        new = tx.execute(NEW_HEADS, [_head(asks[name], run_ids[name]) for name in sorted(asks)]).all()
        created.update(row.subject for row in new)
        active = [(row.id, asks[row.subject], run_ids[row.subject]) for row in new if run_ids[row.subject]]
        if active:
            tx.execute(NEW_RUNS, [_run(head_id, ask, run_id) for head_id, ask, run_id in active])
            publish_seq.bump(tx, tenant, collection)
        if new:
            tx.execute(journal.WRITE, [_note(row.id, asks[row.subject], run_ids[row.subject]) for row in new])

        bare = [row.subject for row in new] + _without_document(tx, asks)
        if bare:
            new_rows = [row_of(tenant, collection, drafts[name]) for name in sorted(set(bare))]
            tx.execute(NEW_DOCUMENTS, new_rows)
            quotas.check(tx, tenant, quota)

    db.write("import", body)
    active = sum(run_ids[name] is not None for name in created)
    return Imported(active, len(created) - active)


def _without_document(tx: Tx, asks: dict[str, Ask]) -> list[str]:
    """The subjects of imported heads without a document; they belong to the collection from now on."""
    first = next(iter(asks.values()))
    values = {"tenant": first.tenant, "kind": first.kind, "subjects": sorted(asks)}
    bare = tx.all(WITHOUT_DOCUMENT, values)
    for row in bare:
        tx.execute(SET_COLLECTION, {"b_head": row.id, "b_collection": first.collection})
    return [str(row.subject) for row in bare]


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
    url: str,
    table_name: str = "documents",
    id_column: str = "id",
    active_column: str = "is_active",
    title_column: str | None = None,
    url_column: str | None = None,
) -> Iterator[ImportedRow]:
    """Every row of a table in the other database, streamed from one snapshot.

    The database is only read, and none of its settings are changed.
    """
    optional = {"title": title_column, "url": url_column}
    fields = {"id": id_column, "is_active": active_column, **{k: v for k, v in optional.items() if v}}
    schema, name = _identifiers(table_name, *fields.values())
    engine = _open_read_only(url)
    try:
        with engine.connect() as connection:
            _check_columns(connection, schema, name, fields.values())
            source = table(
                quoted_name(name, quote=True),
                *(column(quoted_name(one, quote=True)) for one in dict.fromkeys(fields.values())),
                schema=quoted_name(schema, quote=True) if schema else None,
            )
            streamed = connection.execution_options(yield_per=BATCH).execute(
                select(*(source.columns[one] for one in fields.values()))
            )
            for row in streamed:
                yield ImportedRow(**dict(zip(fields, row, strict=True)))
    except exc.OperationalError as error:
        message = f"the database to import from cannot be read ({error.orig}); check its URL"
        raise BadRequestError(message, code="import_unreadable") from error
    finally:
        engine.dispose()


def _identifiers(table_name: str, *columns: str) -> tuple[str | None, str]:
    parts = table_name.split(".")
    for name in (*parts, *columns):
        if len(parts) > 2 or not IDENTIFIER.fullmatch(name):
            message = f"{name!r} is no valid name of a table or column; use letters, digits and _"
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


def _check_columns(connection: Connection, schema: str | None, name: str, needed: Iterable[str]) -> None:
    inspector = inspect(connection)
    if not inspector.has_table(name, schema=schema):
        message = f"there is no table {name!r} in the database to import from; name it with --table"
        raise BadRequestError(message, code="table_missing")
    known = {column["name"] for column in inspector.get_columns(name, schema=schema)}
    for one in needed:
        if one not in known:
            message = f"table {name!r} has no column {one!r}; it has {', '.join(sorted(known))}"
            raise BadRequestError(message, code="column_missing")
