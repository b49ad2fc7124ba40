"""Where documents came from: the items of sources that they were made of."""

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from holdfast.store.base.database import Database
from holdfast.store.base.schema import source_items as table
from holdfast.store.base.schema import sources as sources_table
from holdfast.store.library.source_items import ItemState

OF_DOCUMENT = (
    select(
        table.c.external_id,
        table.c.url,
        table.c.state,
        sources_table.c.id,
        sources_table.c.name,
        sources_table.c.type,
    )
    .select_from(
        table.outerjoin(
            sources_table,
            (sources_table.c.tenant == table.c.tenant)
            & (sources_table.c.id == table.c.source)
            & sources_table.c.removal.is_(None),
        )
    )
    .where(table.c.tenant == bindparam("tenant"), table.c.document == bindparam("document"))
    .order_by(table.c.source, table.c.external_id)
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document came from: an item of a source, which is None while that is being removed."""

    external_id: str
    url: str | None
    state: ItemState
    source_id: str | None
    source_name: str
    source_type: str


def of_document(db: Database, tenant: str, document_id: str, limit: int = 20) -> list[Origin]:
    """The items that the document was made of."""
    values = {"tenant": tenant, "document": document_id, "limit": limit}
    return [
        Origin(row.external_id, row.url, ItemState(row.state), row.id, row.name or "", row.type or "")
        for row in db.look(OF_DOCUMENT, values)
    ]
