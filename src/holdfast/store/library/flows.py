"""The flows of a tenant. A version that was applied never changes, so that readers may keep it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import now
from holdfast.store.base.schema import flows
from holdfast.store.protocol import slices

MOST_LISTED = 500


@dataclass(frozen=True, slots=True)
class StoredFlow:
    """A version of a flow as it was applied."""

    name: str
    version: int
    source: str
    files: Mapping[str, str]
    digest: str
    actor: str
    created_at: float

    @property
    def id(self) -> str:
        """As a collection names it."""
        return f"{self.name}@{self.version}"


_COLUMNS = [flows.c[name] for name in StoredFlow.__dataclass_fields__]
ONE = select(*_COLUMNS).where(
    flows.c.tenant == bindparam("tenant"),
    flows.c.name == bindparam("name"),
    flows.c.version == bindparam("version"),
)
LATEST = select(func.max(flows.c.version).label("version")).where(
    flows.c.tenant == bindparam("tenant"), flows.c.name == bindparam("name")
)
LISTED = (
    select(*_COLUMNS)
    .where(flows.c.tenant == bindparam("tenant"))
    .order_by(flows.c.name, flows.c.version)
    .limit(MOST_LISTED)
)
NEW = (
    upsert(flows)
    .values(
        tenant=bindparam("b_tenant"),
        name=bindparam("b_name"),
        version=bindparam("b_version"),
        source=bindparam("b_source"),
        files=bindparam("b_files"),
        digest=bindparam("b_digest"),
        actor=bindparam("b_actor"),
        created_at=now(),
    )
    .on_conflict_do_nothing()
)


def _flow(row: Row[Any]) -> StoredFlow:
    return StoredFlow(**row._asdict() | {"files": row.files or {}})


def one(db: Database, tenant: str, name: str, version: int) -> StoredFlow | None:
    """This version of the flow, or None."""
    row = db.first(ONE, {"tenant": tenant, "name": name, "version": version})
    return None if row is None else _flow(row)


def latest(db: Database, tenant: str, name: str) -> int | None:
    """The newest version of the flow, or None."""
    row = db.first(LATEST, {"tenant": tenant, "name": name})
    return None if row is None or row.version is None else int(row.version)


def listed(db: Database, tenant: str) -> list[StoredFlow]:
    """The flows of a tenant by name and version, as many as a list shows."""
    return [_flow(row) for row in db.look(LISTED, {"tenant": tenant})]


def put(db: Database, tenant: str, flow: StoredFlow) -> StoredFlow:
    """The version as it is stored: this one, or the one that was applied before under the same number."""
    values = {f"b_{name}": getattr(flow, name) for name in StoredFlow.__dataclass_fields__}
    values = {**values, "b_tenant": tenant, "b_files": dict(flow.files) or None}
    del values["b_created_at"]
    key = {"tenant": tenant, "name": flow.name, "version": flow.version}

    def body(tx: Tx) -> StoredFlow:
        tx.execute(NEW, values)
        # In a second statement: one that inserts or reads returns no row under a race.
        return _flow(tx.all(ONE, key)[0])

    return db.write("put_flow", body)


def results(db: Database, head_id: int) -> list[Mapping[str, Any]]:
    """The results of the slices of the published generation, in order."""
    rows = db.read(lambda tx: tx.all(slices.PUBLISHED, {"head_id": head_id}))
    return [row.result for row in sorted(rows, key=lambda row: row.ordinal) if row.result]
