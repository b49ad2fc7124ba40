"""Ten thousand documents, written straight into the tables: what is tested here is the web UI."""

from sqlalchemy import insert, select, update

from holdfast.core.states import Status, Verb
from holdfast.store.base import journal
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import documents, heads
from holdfast.store.base.schema import journal as entries

SHELVES = 1000


def fill(db: Database, collection: str, number: int) -> None:
    """The collection has so many published documents."""
    for start in range(0, number, SHELVES):
        ids = [f"{collection}-{n:05}" for n in range(start, min(number, start + SHELVES))]

        def body(tx, ids=ids):
            rows = [
                {
                    "tenant": "default",
                    "id": name,
                    "collection": collection,
                    "title": f"Paper {name}",
                    "source": "text",
                    "digest": name,
                    "size": 1000,
                    "pages": 1,
                    "chunks": 3,
                    "created_at": 1.0,
                    "updated_at": 1.0 + int(name[-5:]),
                }
                for name in ids
            ]
            tx.connection.execute(insert(documents), rows)
            items = [
                {
                    "tenant": "default",
                    "kind": "index",
                    "subject": f"document:{name}",
                    "collection": collection,
                    "generation": 1,
                    "status": Status.SUCCESS.value,
                    "published_generation": 1,
                    "visible": True,
                    "fingerprint": "",
                    "imported": True,  # else the sweep would miss their chunks, and ask for them
                    "updated_at": 1.0,
                }
                for name in ids
            ]
            tx.connection.execute(insert(heads), items)

        db.write("fill", body)


def change(db: Database, collection: str, number: int, title: str) -> None:
    """The newest of them have another title, all in one transaction, and the journal tells of each."""

    def body(tx):
        result = tx.connection.execute(
            select(documents.c.id, heads.c.id.label("head"))
            .join(heads, heads.c.subject == "document:" + documents.c.id)
            .where(documents.c.collection == collection)
            .order_by(documents.c.updated_at.desc())
            .limit(number)
        ).all()
        for row in result:
            tx.connection.execute(
                update(documents).where(documents.c.id == row.id).values(title=f"{title} {row.id}")
            )
            noted = journal.entry(Verb.PUBLISH, "done", tenant="default", head_id=row.head, generation=1)
            tx.connection.execute(
                insert(entries).values(at=now(), **{name[2:]: value for name, value in noted.items()})
            )

    db.write("change", body)
