"""How much a tenant stores and may store: documents, and the bytes of their originals.

The database counts with triggers, in the transaction that changes a document; the counter row stays locked
until that transaction ends. So a check at the end of the transaction sees everything added before, and of two
uploads that do not fit together one is refused. A deleted document frees its share at once, though the sweep
removes its bytes from the disk later.

Not counted: chunks, vectors and older versions. They are proportional to the documents.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Row, bindparam, select
from sqlalchemy.dialects.postgresql import insert as upsert

from holdfast.core.errors import WorkError
from holdfast.core.states import Disposition, Verb
from holdfast.store.base import journal
from holdfast.store.base.database import Database, Tx
from holdfast.store.base.schema import quotas


class QuotaExceededError(WorkError):
    """The tenant would store more than it may; nothing was added."""

    code = "quota_exceeded"


@dataclass(frozen=True, slots=True)
class Quota:
    """The most documents and bytes that a tenant may store; None for no limit."""

    documents: int | None = None
    bytes: int | None = None


UNLIMITED = Quota()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tenant stores, and its limits."""

    tenant: str
    documents: int
    bytes: int
    quota: Quota

    def check(self, *, documents: int = 0, bytes_: int = 0) -> None:
        """Return if this much more fits; otherwise QuotaExceededError."""
        of_documents, of_bytes = self.quota.documents, self.quota.bytes
        if of_documents is not None and self.documents + documents > of_documents:
            raise QuotaExceededError(
                f"the quota of tenant {self.tenant} is {of_documents:,} documents, and with this it would "
                f"hold {self.documents + documents:,}; delete some, or ask an operator to raise it"
            )
        if of_bytes is not None and self.bytes + bytes_ > of_bytes:
            raise QuotaExceededError(
                f"the quota of tenant {self.tenant} is {of_bytes:,} bytes, and with this it would have "
                f"{self.bytes + bytes_:,}; delete some documents, or ask an operator to raise it"
            )


ONE = select(quotas).where(quotas.c.tenant == bindparam("tenant"))
ALL = select(quotas).order_by(quotas.c.tenant)
_set = upsert(quotas).values(
    tenant=bindparam("b_tenant"), most_documents=bindparam("b_documents"), most_bytes=bindparam("b_bytes")
)
SET = _set.on_conflict_do_update(
    index_elements=[quotas.c.tenant],
    set_={"most_documents": _set.excluded.most_documents, "most_bytes": _set.excluded.most_bytes},
)


def _usage(row: Row[tuple[object, ...]] | None, tenant: str, default: Quota) -> Usage:
    if row is None:
        return Usage(tenant, 0, 0, default)
    own = Quota(
        default.documents if row.most_documents is None else row.most_documents,
        default.bytes if row.most_bytes is None else row.most_bytes,
    )
    return Usage(tenant, row.documents, row.bytes, own)


@contextlib.contextmanager
def noting(db: Database, tenant: str, actor: str) -> Iterator[None]:
    """A refusal for the quota inside this block is recorded in the journal and counted.

    In its own transaction, as that of the request is rolled back.
    """
    try:
        yield
    except QuotaExceededError as error:
        noted = journal.entry(
            Verb.REQUEST,
            f"{Disposition.REFUSED}:{error.code}",
            tenant=tenant,
            actor=actor,
            data={"message": error.message},
        )
        db.write("refuse_for_quota", lambda tx: journal.write(tx, noted))
        raise


def check(tx: Tx, tenant: str, default: Quota) -> None:
    """Return if the tenant, including this transaction, is within its quota; else QuotaExceededError.

    Call it last in a transaction that has added something, which holds the row by then.
    """
    _usage(tx.one(ONE, {"tenant": tenant}), tenant, default).check()


def usage(db: Database, tenant: str, default: Quota) -> Usage:
    """What the tenant stores and may store."""
    return _usage(db.first(ONE, {"tenant": tenant}), tenant, default)


def every(db: Database, default: Quota) -> list[Usage]:
    """Usage and limits of every tenant that ever stored something or has a limit."""
    return [_usage(row, row.tenant, default) for row in db.look(ALL)]


def limits(db: Database, tenant: str) -> Quota:
    """The tenant's own limits; None where those of the settings apply."""
    row = db.first(ONE, {"tenant": tenant})
    return UNLIMITED if row is None else Quota(row.most_documents, row.most_bytes)


def set_limits(db: Database, tenant: str, own: Quota) -> None:
    """The tenant has these limits from now on, and those of the settings where one is None.

    What it stores already stays, even above them.
    """
    values = {"b_tenant": tenant, "b_documents": own.documents, "b_bytes": own.bytes}
    db.write("set_quota", lambda tx: tx.execute(SET, values))
