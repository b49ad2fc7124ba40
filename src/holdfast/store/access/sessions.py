"""Sessions of the web UI: a random token for a key, valid for some hours. Only its digest is stored."""

from collections.abc import Sequence

from sqlalchemy import and_, bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.store.access import keys
from holdfast.store.access.keys import Key
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.schema import api_keys, page_sessions

NEW = (
    upsert(page_sessions)
    .values(
        digest=bindparam("b_digest"),
        key_id=bindparam("b_key_id"),
        created_at=now(),
        expires_at=now() + bindparam("b_seconds"),
    )
    .on_conflict_do_nothing()
)
FORGET = delete(page_sessions).where(page_sessions.c.expires_at < now())
END = delete(page_sessions).where(page_sessions.c.digest == bindparam("b_digest"))
_with_keys = page_sessions.join(api_keys, api_keys.c.id == page_sessions.c.key_id)
_is_live = and_(page_sessions.c.expires_at > now(), keys.IS_LIVE)
KEY_OF = (
    select(*(api_keys.c[name] for name in Key.__dataclass_fields__))
    .select_from(_with_keys)
    .where(page_sessions.c.digest == bindparam("digest"), _is_live)
)
STILL_LIVE = (
    select(page_sessions.c.digest)
    .select_from(_with_keys)
    .where(key_in(page_sessions.c.digest, bindparam("digests", type_=KeyList())), _is_live)
)


def begin(db: Database, digest: str, key_id: str, *, seconds: float) -> None:
    """A session with the token of this digest is valid for so many seconds; expired ones are deleted."""

    def body(tx: Tx) -> None:
        tx.execute(FORGET)
        tx.execute(NEW, {"b_digest": digest, "b_key_id": key_id, "b_seconds": seconds})

    db.write("begin_session", body)


def key_of(db: Database, digest: str) -> Key | None:
    """The key of a session that has not ended, if the key is valid now."""
    row = db.first(KEY_OF, {"digest": digest})
    return None if row is None else keys.of_row(row)


def still_live(db: Database, digests: Sequence[str]) -> list[str]:
    """The digests among these whose sessions and keys are valid."""
    return [row.digest for row in db.look(STILL_LIVE, {"digests": list(digests)})] if digests else []


def end(db: Database, digest: str) -> None:
    """The session is no longer valid."""
    db.write("end_session", lambda tx: tx.execute(END, {"b_digest": digest}))
