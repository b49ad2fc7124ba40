"""Everything that a process of Holdfast is made of."""

import gc
from dataclasses import dataclass
from typing import Self

from holdfast.bootstrap.clients import Clients
from holdfast.documents.blobs import Blobs
from holdfast.documents.parse.parser import Parser
from holdfast.documents.parse.pool import Parsers
from holdfast.engine.engine import Engine
from holdfast.engine.kinds import Supplies
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.vectors import pgvector_sync

# New objects before a look for garbage in cycles, and how many looks before older ones are included.
GARBAGE = (10_000, 20, 20)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything that a process of Holdfast is made of."""

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
    vectors: pgvector_sync.Filling | None = None

    def close(self) -> None:
        """Every connection of this runtime is closed; the engine has stopped renewing leases."""
        self.engine.watchdog.stop()
        if self.vectors is not None:
            self.vectors.close()
        self.parser.close()
        self.parsers.close()
        self.thumbnail_parsers.close()
        self.shelf.close()
        self.providers.close()
        self.watch.close()
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def settle_down() -> None:
    """What this process has made is not looked through for garbage again; what is new, less often than usual.

    A look through everything stops every thread meanwhile: 170 ms, every ten seconds in an API under load. In
    a worker the looks were a twelfth of the processor time of a small document (one run). What was there
    before a fork also stays shared with the parent.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)
