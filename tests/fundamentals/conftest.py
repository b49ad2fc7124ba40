"""What the stories of the manual have in common: one SQLite file, engines on it, and time moved by hand."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Double, select, update

from holdfast.core.records import Ask, Claim, Head
from holdfast.core.states import Lane, TaskState
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import SweepRules
from holdfast.engine.wakeups import Recorder
from holdfast.store.base.database import Database
from holdfast.store.base.schema import duties, journal, metadata, tasks
from holdfast.store.features import open_database
from holdfast.store.protocol import claims
from holdfast.store.views import reads
from holdfast.testing.prices import PRICES


class Story:
    """A database and the moves that the stories are made of. Nobody sleeps: `pass_time` moves the rows."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.sender = Recorder()

    def engine(self, *kinds: Kind, **parts: Any) -> Engine:
        """One process. Its sweep is always due, for the stories decide when time passes."""
        default = {
            "sender": self.sender,
            "rules": SweepRules(interval=0.0, tidy_every=0.0),
            "owner": "worker",
        }
        return Engine(self.db, EngineDependencies(kinds=kinds, **{"prices": PRICES} | default | parts))

    def ask(self, subject: str = "document:1", **changes: Any) -> Ask:
        return Ask(**{"kind": "index", "subject": subject, "content": "a", **changes})

    def dead_worker(self, engine: Engine) -> Claim:
        """Somebody claimed the best due task and was never heard of again."""
        claim = claims.claim_best(
            self.db,
            lanes=list(Lane),
            pipelines=engine.registry.pipelines,
            owner="dead",
            token=self.db.token(),
            ttl=engine.leases.terms.ttl,
        )
        assert claim is not None
        return claim

    def pass_time(self, seconds: float, *, without_sweep: bool = False) -> None:
        """Everything that has a time is that much older. `without_sweep`: the sweepers were away as well."""

        def body(tx: Any) -> None:
            for table in metadata.tables.values():
                if table is duties and not without_sweep:
                    continue
                for column in (one for one in table.columns if isinstance(one.type, Double)):
                    tx.execute(update(table).where(column > seconds).values({column: column - seconds}))

        self.db.write("by_hand", body)

    def end_grace(self) -> None:
        """The time is over that leases are given after an outage of the database."""
        self.db.write("by_hand", lambda tx: tx.execute(update(duties).values(grace_until=0.0)))

    def head(self, subject: str = "document:1", kind: str = "index", tenant: str = "default") -> Head:
        result = reads.head(self.db, tenant, kind, subject)
        assert result is not None
        return result

    def run(self, run_id: str) -> Any:
        result = reads.run(self.db, run_id)
        assert result is not None
        return result.run

    def tasks(self, run_id: str) -> Any:
        return [one.task for one in reads.tasks_of(self.db, run_id)]

    def texts(self, subject: str = "document:1") -> list[str]:
        """What a reader sees of the subject."""
        seen = reads.visible_chunks(self.db, self.head(subject).id)
        return [one.chunk.text for one in seen.chunks] if seen else []

    def journal(self, verb: str) -> list[str]:
        query = select(journal.c.reason).where(journal.c.verb == verb).order_by(journal.c.id)
        return [row.reason for row in self.db.read(lambda tx: tx.all(query))]

    def open_tasks(self) -> int:
        query = select(tasks.c.id).where(
            tasks.c.state.in_([TaskState.QUEUED, TaskState.WAITING, TaskState.RUNNING])
        )
        return len(self.db.read(lambda tx: tx.all(query)))


@pytest.fixture
def story(sqlite_url: str) -> Iterator[Story]:
    db = open_database(sqlite_url)
    yield Story(db)
    db.close()


@pytest.fixture
def everywhere(database_url: str) -> Iterator[Story]:
    """The same moves, told once on each database."""
    db = open_database(database_url, patience=0.2)
    yield Story(db)
    db.close()
