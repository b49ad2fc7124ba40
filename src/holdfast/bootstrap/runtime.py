"""The components of a Holdfast process."""

import gc
from dataclasses import dataclass
from typing import Self

from holdfast.bootstrap.clients import Clients
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.pool import Parsers
from holdfast.engine.engine import Engine
from holdfast.engine.kinds import Supplies
from holdfast.kinds.flows.functions import StepFunctions
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.vectors import pgvector_sync

# Thresholds of Python's cyclic garbage collector.
GARBAGE = (10_000, 20, 20)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The components of a Holdfast process."""

    settings: Settings
    db: Database
    watch: Database
    engine: Engine
    providers: Clients
    supplies: Supplies
    shelf: Blobs
    parser: Parser
    parsers: Parsers
    thumbnail_parsers: Parsers
    functions: StepFunctions
    vectors: pgvector_sync.Filling | None = None

    def close(self) -> None:
        """Stop renewing leases and close every connection."""
        self.engine.watchdog.stop()
        if self.vectors is not None:
            self.vectors.close()
        self.parser.close()
        self.parsers.close()
        self.thumbnail_parsers.close()
        self.functions.close()
        self.shelf.close()
        self.providers.close()
        if self.engine.parts.relays is not None:
            self.engine.parts.relays.close()
        self.watch.close()
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def settle_down() -> None:
    """Exclude existing objects from garbage collection, and collect less often than usual.

    A full collection stops every thread: 170 ms, every ten seconds in an API under load. In a worker it took
    a twelfth of the CPU time of a small document (one run). Excluded objects also stay shared after a fork.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
