"""API keys: created, listed, revoked, looked up. Only the digest of a token is stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, and_, bindparam, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.base.database import Database
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import api_keys


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its token. Times are database seconds; limits of None are those of the settings."""

    id: str
    tenant: str
    name: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    rate: float | None
    concurrency: int | None
    filter: dict[str, Any] | None = None


_KEY = [api_keys.c[name] for name in Key.__dataclass_fields__]
NEW = (
    upsert(api_keys)
    .values(
        id=bindparam("b_id"),
        tenant=bindparam("b_tenant"),
        name=bindparam("b_name"),
        digest=bindparam("b_digest"),
        scopes=bindparam("b_scopes"),
        created_at=now(),
        expires_at=now() + bindparam("b_seconds"),
        rate=bindparam("b_rate"),
        concurrency=bindparam("b_concurrency"),
        filter=bindparam("b_filter"),
    )
    .on_conflict_do_nothing()
)
IS_LIVE = and_(
    api_keys.c.revoked_at.is_(None), or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now())
)
LIVE = select(*_KEY).where(api_keys.c.digest == bindparam("digest"), IS_LIVE)
STILL_LIVE = select(api_keys.c.digest).where(
    key_in(api_keys.c.digest, bindparam("digests", type_=KeyList())), IS_LIVE
)
BY_DIGEST = select(*_KEY).where(api_keys.c.digest == bindparam("digest"))
ALL = select(*_KEY).order_by(api_keys.c.created_at, api_keys.c.id)
ANY = select(api_keys.c.digest).limit(1)
REVOKE = (
    update(api_keys)
    .where(api_keys.c.id == bindparam("b_id"))
    .values(revoked_at=func.coalesce(api_keys.c.revoked_at, now()))
)


def of_row(row: Row[Any]) -> Key:
    """The key of a row that has its columns."""
    return Key(**row._asdict() | {"scopes": tuple(row.scopes)})


def make(
    db: Database,
    key_id: str,
    digest: str,
    *,
    tenant: str,
    name: str,
    scopes: Sequence[str],
    seconds: float | None,
    rate: float | None = None,
    concurrency: int | None = None,
    only: Mapping[str, Any] | None = None,
) -> Key:
    """The key is valid from now on, for so many seconds or for ever; `only` is its filter."""
    values = {
        "b_id": key_id,
        "b_digest": digest,
        "b_tenant": tenant,
        "b_name": name,
        "b_scopes": list(scopes),
        "b_seconds": seconds,
        "b_rate": rate,
        "b_concurrency": concurrency,
        "b_filter": None if only is None else dict(only),
    }
    db.write("make_key", lambda tx: tx.execute(NEW, values))
    return of_row(db.look(BY_DIGEST, {"digest": digest})[0])


def live(db: Database, digest: str) -> Key | None:
    """The key whose token has this digest, if it is valid now."""
    row = db.first(LIVE, {"digest": digest})
    return None if row is None else of_row(row)


def still_live(db: Database, digests: Sequence[str]) -> list[str]:
    """The digests among these whose keys are valid now."""
    return [row.digest for row in db.look(STILL_LIVE, {"digests": list(digests)})] if digests else []


def any_created(db: Database) -> bool:
    """True if a key was ever created, even if revoked: revoking the last one must not end authentication."""
    return db.first(ANY) is not None


def every(db: Database) -> tuple[Key, ...]:
    """All keys, oldest first, including those that are no longer valid."""
    return tuple(of_row(row) for row in db.look(ALL))


def revoke(db: Database, key_id: str) -> bool:
    """The key is no longer valid; False if there is no such key."""
    return db.write("revoke_key", lambda tx: tx.execute(REVOKE, {"b_id": key_id}).rowcount > 0)
