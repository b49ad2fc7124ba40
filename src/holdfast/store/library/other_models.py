"""Documents whose published generation was embedded by another provider or model than the current one."""

from sqlalchemy import bindparam, func, or_, select

from holdfast.core import subjects
from holdfast.store.base.database import Database
from holdfast.store.base.schema import heads, runs

# Counting stops here: with a thousand, all of them have to be indexed again.
MOST = 1000

_other = (
    select(heads.c.id)
    .join(runs, (runs.c.head_id == heads.c.id) & (runs.c.generation == heads.c.published_generation))
    .where(
        heads.c.tenant == bindparam("tenant"),
        heads.c.collection == bindparam("collection"),
        heads.c.kind == subjects.INDEX,
        heads.c.visible,
        ~heads.c.imported,
        or_(
            runs.c.options["model"].as_string() != bindparam("model"),
            runs.c.options["provider"].as_string() != bindparam("provider"),
        ),
    )
    .limit(MOST)
    .subquery("other")
)
OTHERS = select(func.count()).select_from(_other)


def count(db: Database, tenant: str, collection: str, *, provider: str, model: str) -> int:
    """How many documents of the collection cannot be found by meaning, at most a thousand."""
    where = {"tenant": tenant, "collection": collection, "provider": provider, "model": model}
    return int(db.look(OTHERS, where)[0][0])
