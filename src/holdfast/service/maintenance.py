"""Sweep duties for documents: repair what is incomplete, and delete blobs that nothing refers to.

A repair never writes by itself: it *requests* a new generation, which is fenced like any other, reuses what
the ledger has and pays only for vectors that are really missing.
"""

import logging

from holdfast.core import decide, subjects
from holdfast.core.ports import Host
from holdfast.core.states import Disposition, Verb
from holdfast.documents.blobs import Blobs
from holdfast.engine import wakeups
from holdfast.store.base import journal
from holdfast.store.base.database import Database
from holdfast.store.library import integrity
from holdfast.store.protocol import requests

STEP = 200
KEPT_UNNAMED = 86_400.0
MOST_BLOBS = 2000
ACTOR = "sweep"

log = logging.getLogger(__name__)


class Drift:
    """Looks through the published documents, some at each turn, and asks anew for what is not whole."""

    def __init__(
        self, db: Database, host: Host, sender: wakeups.Sender, patience: decide.SilenceLimits
    ) -> None:
        self._db = db
        self._host = host
        self._sender = sender
        self._patience = patience
        self._after = 0

    def __call__(self) -> int:
        """One turn; answers how many repairs were requested."""
        gaps, self._after = integrity.look(self._db, after=self._after, limit=STEP)
        return sum(self._repair(gap) for gap in gaps)

    def _repair(self, gap: integrity.MissingPart) -> bool:
        last = requests.last_ask(self._db, gap.tenant, subjects.INDEX, gap.subject)
        if last is None or not last.pipeline:
            return False
        ask = requests.again(last, actor=ACTOR)
        answer = requests.request(self._db, ask, run_id=self._host.token(), patience=self._patience)
        if answer.disposition is Disposition.REFUSED or not answer.created:
            return False
        data = {"missing_chunks": gap.missing_chunks, "missing_vectors": gap.missing_vectors}
        noted = journal.entry(
            Verb.REPAIR,
            "not_whole",
            tenant=gap.tenant,
            head_id=gap.head_id,
            run_id=answer.run_id,
            generation=answer.generation,
            actor=ACTOR,
            data=data,
        )
        self._db.write("repair", lambda tx: journal.once(tx, noted))
        log.warning(
            "%s of tenant %s is incomplete: %s chunks and %s vectors missing; generation %s was requested",
            gap.subject,
            gap.tenant,
            gap.missing_chunks,
            gap.missing_vectors,
            answer.generation,
        )
        wakeups.wake_lanes(self._sender, {ask.lane: 1})
        return True


class Shelf:
    """Deletes blobs that no document refers to, a day after they were stored, some per turn; and unfinished
    uploads whose process has died.
    """

    def __init__(self, db: Database, shelf: Blobs) -> None:
        self._db = db
        self._shelf = shelf
        self._after = ""

    def __call__(self) -> int:
        """One turn; answers how many blobs went."""
        gone, looked = self._shelf.discard_partial(KEPT_UNNAMED), 0
        for blob in self._shelf.older(KEPT_UNNAMED, self._after):
            if looked == MOST_BLOBS:
                return gone
            if not integrity.is_named(self._db, blob.digest):
                # Again by age: somebody may have put the same bytes since, and be about to name them.
                gone += self._shelf.delete(blob.digest, age=KEPT_UNNAMED)
            self._after, looked = blob.digest, looked + 1
        self._after = ""
        return gone
