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
    """The id of the blob store that belongs to the database; None until the first process has chosen one."""
    rows = db.look(KNOWN)
    return str(rows[0].blobs_id) if rows else None


def choose(db: Database, new_id: str, mark: Callable[[], None]) -> str:
    """The stored id: `new_id` if there was none. In that case `mark` was called before the commit.

    A crash in between leaves a marked store and an unmarked database, which the next start repairs. The other
    way round, the database would have no store.
    """

    def body(tx: Tx) -> str:
        tx.execute(FIRST, {"b_id": new_id})
        stored_id = str(tx.all(KNOWN)[0].blobs_id)
        if stored_id == new_id:
            mark()
        return stored_id

    return db.write("choose_blobs", body)


def replace(db: Database, new_id: str) -> None:
    """The stored id is `new_id`."""

    def body(tx: Tx) -> None:
        tx.execute(FIRST, {"b_id": new_id})
        tx.execute(CHANGE, {"b_id": new_id})

    db.write("replace_blobs", body)


def some_digests(db: Database, limit: int) -> list[str]:
    """The digests of some documents whose bytes should be in the store."""
    return [str(row.digest) for row in db.look(SOME_DIGESTS, {"limit": limit})]
