"""`publish_seq`: rises when the visible content of a collection changes, so that readers notice.

It is bumped last in the transaction, as every publication of the collection shares the row.
"""

from sqlalchemy import bindparam
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Tx
from holdfast.store.base.schema import collections

BUMP_COLLECTION = (
    upsert(collections)
    .values(tenant=bindparam("b_tenant"), id=bindparam("b_collection"), publish_seq=1)
    .on_conflict_do_update(
        index_elements=[collections.c.tenant, collections.c.id],
        set_={"publish_seq": collections.c.publish_seq + 1},
    )
)


def bump(tx: Tx, tenant: str, *collection_ids: str | None) -> None:
    """Readers of these collections will notice that the visible content has changed."""
    for collection in sorted({name for name in collection_ids if name is not None}):
        tx.execute(BUMP_COLLECTION, {"b_tenant": tenant, "b_collection": collection})
