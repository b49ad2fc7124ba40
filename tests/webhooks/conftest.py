"""An engine that indexes and delivers, on each database, with a receiver."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import select

from holdfast.core import retry
from holdfast.core.records import Ask, Chunk
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.host import ThreadHost
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import SweepRules
from holdfast.engine.wakeups import Recorder
from holdfast.kinds import webhook
from holdfast.store.base.database import Database
from holdfast.store.base.schema import deliveries as table
from holdfast.store.features import open_database
from holdfast.store.follow_ups import actions, deliveries, delivery_attempts
from tests.webhooks.receiver import Receiver

SECRET = "a secret of the receiver"
QUICK = webhook.DeliveryRules(
    seconds=10.0, backoff=retry.Backoff(first=0.01, factor=1.0, most=0.01), allow_private=True
)


def read_aloud(work: Any) -> None:
    """A document that wants to fail does; any other is its content."""
    if work.content == "fail":
        raise ValueError("broken")
    work.stage([Chunk(0, work.content)])


class Office:
    """One database, one engine, and what people do with them."""

    def __init__(self, db: Database, rules: webhook.DeliveryRules = QUICK) -> None:
        self.db = db
        self.sender = Recorder()
        self.engine = self.hire(rules)

    def hire(self, rules: webhook.DeliveryRules) -> Engine:
        host = ThreadHost()
        kinds = [
            Kind("index", read_aloud),
            Kind("job", read_aloud),
            webhook.Webhook(self.db, host, rules).kind(),
        ]
        every = SweepRules(interval=0.02, tidy_every=60.0)
        return Engine(self.db, EngineDependencies(kinds=kinds, host=host, sender=self.sender, rules=every))

    def hook(self, url: str, *, tenant: str = "default", collection: str = "books", **more: Any) -> int:
        """The collection tells this address of each ready document."""
        return actions.add_action(
            self.db,
            tenant=tenant,
            collection=collection,
            kind=deliveries.KIND,
            options={"sort": "webhook", "url": url},
            pipeline=deliveries.PIPELINE,
            secret=SECRET,
            **more,
        )

    def ask(self, content: str = "a", subject: str = "document:1", **more: Any) -> Any:
        return self.engine.request(Ask("index", subject, content=content, collection="books", **more))

    def work(self) -> None:
        """All that is due, or falls due soon, was done."""
        self.engine.run_until_idle(patience=30.0)

    def sent(self, tenant: str = "default") -> list[delivery_attempts.Delivery]:
        """All deliveries of the tenant, the newest first."""
        return list(delivery_attempts.page(self.db, tenant, state=None, limit=100))

    def bodies(self) -> dict[str, bytes]:
        result = self.db.read(lambda tx: tx.all(select(table.c.id, table.c.body)))
        return {row.id: bytes(row.body) for row in result}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as created:
        yield created


@pytest.fixture
def office(database_url: str) -> Iterator[Office]:
    db = open_database(database_url)
    yield Office(db)
    db.close()


@pytest.fixture
def small(sqlite_url: str) -> Iterator[Office]:
    """An office for what is decided before any database is asked."""
    db = open_database(sqlite_url)
    yield Office(db)
    db.close()


@pytest.fixture
def strict(sqlite_url: str) -> Iterator[Callable[..., Office]]:
    """An office with rules of its own."""
    db = open_database(sqlite_url)
    yield lambda **changes: Office(db, webhook.DeliveryRules(**changes))
    db.close()
