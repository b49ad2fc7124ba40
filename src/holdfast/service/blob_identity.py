"""The blob store and the database share an id, so that blobs are only looked for where they were stored.

A worker started with another folder or bucket would find no documents and fail each one; a sweep there would
delete somebody else's blobs. So the store carries an id that the database knows, and a process that finds a
different one does not start. The first process of a new installation chooses the id; an installation of an
earlier release gets one if its blobs are where this process looks.
"""

import secrets
from dataclasses import dataclass

from holdfast.core.errors import BadRequestError
from holdfast.documents.blobs import Blobs
from holdfast.store.base import installation
from holdfast.store.base.database import Database

# An installation without an id is recognised by the bytes of a few of its documents.
FEW = 20
MANY = 1000


@dataclass(frozen=True, slots=True)
class BlobStoreIdentity:
    """The ids, and how many of the documents that were looked at have their bytes here."""

    database: str | None
    store: str | None
    checked: int
    missing: int


def check(db: Database, blobs: Blobs, where: str) -> None:
    """The store belongs to the database; `where` says in words which store this is.

    Raises BadRequestError, which says what to set.
    """
    known, carried = installation.blobs_id(db), blobs.identity()
    if known is None:
        _refuse_strange(db, blobs, where, carried)
        chosen = carried or secrets.token_hex(8)
        known = installation.choose(db, chosen, lambda: blobs.identify(chosen))
        carried = blobs.identity()
    if known != carried:
        holds = (
            "no bytes of this installation" if carried is None else f"the bytes of another one ({carried})"
        )
        raise BadRequestError(_message(where, holds, known), code="other_blobs")


def _refuse_strange(db: Database, blobs: Blobs, where: str, carried: str | None) -> None:
    """Return if a database without an id may take the store: it is empty, or has the documents' bytes."""
    digests = installation.some_digests(db, FEW)
    if digests and not any(blobs.exists(digest) for digest in digests):
        raise BadRequestError(_message(where, "none of the documents' bytes", None), code="other_blobs")
    if not digests and next(iter(blobs.older(0.0)), None) is not None:
        holds = f"the bytes of another installation ({carried or 'which has no id'})"
        raise BadRequestError(_message(where, holds, None), code="other_blobs")


def _message(where: str, holds: str, known: str | None) -> str:
    mine = f" (it expects {known})" if known else ""
    return (
        f"{where} contains {holds}{mine}; every process of an installation needs the same "
        "HOLDFAST_DATABASE_URL, HOLDFAST_BROKER_URL and HOLDFAST_DATA_DIR, or "
        "HOLDFAST_BLOBS_URL for a bucket; "
        "if the bytes were moved here, say so with: holdfast blobs adopt"
    )


def look(db: Database, blobs: Blobs, most: int = MANY) -> BlobStoreIdentity:
    """The ids as they are, and whether the bytes of up to `most` documents are here."""
    digests = installation.some_digests(db, most)
    missing = sum(not blobs.exists(digest) for digest in digests)
    return BlobStoreIdentity(installation.blobs_id(db), blobs.identity(), len(digests), missing)


def adopt(db: Database, blobs: Blobs, *, force: bool = False) -> BlobStoreIdentity:
    """The store belongs to the database from now on; bytes that are missing are an error unless forced."""
    now = look(db, blobs)
    if now.missing and not force:
        message = (
            f"the bytes of {now.missing} of {now.checked} documents are not here; copy them first, or give "
            "--force and upload those documents again"
        )
        raise BadRequestError(message, code="other_blobs")
    chosen = now.database or secrets.token_hex(8)
    blobs.identify(chosen)
    installation.replace(db, chosen)
    return look(db, blobs)
