"""Leases in the database, next to the tasks. The default: nothing else to run, recovery in seconds."""

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import bindparam, select

from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import Claim
from holdfast.core.states import TaskState
from holdfast.leases.base import DATABASE_TERMS, LeaseBackendError, LeaseTerms
from holdfast.store.base.database import Database
from holdfast.store.base.dialect import KeyList, key_in, now
from holdfast.store.base.rows import literal
from holdfast.store.base.schema import tasks
from holdfast.store.protocol import claims

T = TypeVar("T")

ALIVE = select(tasks.c.id, tasks.c.token).where(
    key_in(tasks.c.token, bindparam("tokens", type_=KeyList())),
    tasks.c.state == literal(TaskState.RUNNING),
    tasks.c.lease_until > now(),
)


class SqlLeases:
    """The task row is the lease: the claim opens it, and whatever releases the task closes it.

    Give it a separate database object (one connection), so that no work of the holder delays a renewal.
    """

    kept_in_database = True

    def __init__(self, db: Database, terms: LeaseTerms = DATABASE_TERMS) -> None:
        self.terms = terms
        self._db = db

    def open(self, claim: Claim) -> bool:  # noqa: ARG002 - the claim that committed is the lease
        """True: the lease began with the claim."""
        return True

    def renew(self, claim: Claim) -> bool:
        """True if the lease now runs for the whole ttl; False if it is gone, which is final."""
        return _translated(lambda: claims.renew(self._db, claim, self.terms.ttl))

    def close(self, claim: Claim) -> None:
        """Nothing to do: release, put_back, finish and fail end the lease in their own transaction."""

    def alive(self, pairs: list[tuple[int, str]]) -> set[int]:
        """The task ids among these whose lease is alive under that token, by the database clock."""
        if not pairs:
            return set()
        values = {"tokens": [token for _, token in pairs]}
        rows = _translated(lambda: self._db.read(lambda tx: tx.all(ALIVE, values)))
        return {task_id for task_id, _ in {(row.id, row.token) for row in rows} & set(pairs)}


def _translated(ask: Callable[[], T]) -> T:
    try:
        return ask()
    except StoreUnavailableError as error:
        raise LeaseBackendError(f"the state of the lease is unknown: {error.message}") from error
