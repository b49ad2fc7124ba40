"""How readers of a collection learn that what is visible in it has changed: its `publish_seq` rose.

Bumped last in its transaction: the row is shared by every publication of the collection.
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
    """Readers of these collections see that what is visible in them has changed."""
    for collection in sorted({name for name in collection_ids if name is not None}):
        tx.execute(BUMP_COLLECTION, {"b_tenant": tenant, "b_collection": collection})
