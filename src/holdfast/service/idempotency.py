"""Responses stored under the caller's idempotency key, so that no repeated request is carried out again."""

import threading
import time
from functools import partial

from holdfast.store.access import idempotency
from holdfast.store.access.idempotency import Hold, StoredResponse
from holdfast.store.base.database import Database

FORGET_EVERY = 600.0


class IdempotencyKeys:
    """The keys of an installation, with what was answered under each."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.token = db.token
        self.settle = partial(idempotency.settle, db)
        self.let_go = partial(idempotency.let_go, db)
        self._lock = threading.Lock()
        self._forgot_at = 0.0

    def begin(self, tenant: str, key: str, fingerprint: str, token: str) -> Hold | StoredResponse:
        """The key is held for this request, or why not: the answer that was kept, or somebody else."""
        self._forget()
        return idempotency.begin(self._db, tenant, key, fingerprint, token)

    def _forget(self) -> None:
        with self._lock:
            due = time.monotonic() - self._forgot_at > FORGET_EVERY or not self._forgot_at
            self._forgot_at = time.monotonic() if due else self._forgot_at
        if due:
            idempotency.forget(self._db)
