"""Which blob store belongs to the database."""

from collections.abc import Callable

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import documents, installation

KNOWN = select(installation.c.blobs_id)
FIRST = upsert(installation).values(id=1, blobs_id=bindparam("b_id")).on_conflict_do_nothing()
CHANGE = update(installation).values(blobs_id=bindparam("b_id"))
SOME_DIGESTS = (
    select(documents.c.digest)
    .where(~documents.c.deleted, documents.c.size > 0)
    .order_by(documents.c.tenant, documents.c.id)
    .limit(bindparam("limit"))
)


def blobs_id(db: Database) -> str | None:
    """The id of the blob store that belongs to the database; None before the first process has chosen one."""
    rows = db.look(KNOWN)
    return str(rows[0].blobs_id) if rows else None


def choose(db: Database, wanted: str, mark: Callable[[], None]) -> str:
    """The id that is kept: `wanted` if none was. Then `mark` was called before the commit.

    A crash in between leaves a store that is marked and a database that is not, which the next start mends;
    the other way round would be a database whose store is nowhere.
    """

    def body(tx: Tx) -> str:
        tx.execute(FIRST, {"b_id": wanted})
        kept = str(tx.all(KNOWN)[0].blobs_id)
        if kept == wanted:
            mark()
        return kept

    return db.write("choose_blobs", body)


def replace(db: Database, wanted: str) -> None:
    """The id that is kept is `wanted`."""

    def body(tx: Tx) -> None:
        tx.execute(FIRST, {"b_id": wanted})
        tx.execute(CHANGE, {"b_id": wanted})

    db.write("replace_blobs", body)


def some_digests(db: Database, limit: int) -> list[str]:
    """The digests of some documents whose bytes should be kept."""
    return [str(row.digest) for row in db.look(SOME_DIGESTS, {"limit": limit})]
