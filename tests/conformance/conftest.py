"""The store as its tests use it: a database of each dialect, and the few moves their stories are made of."""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import delete, exc, func, select, update

from holdfast import faults
from holdfast.core import decide
from holdfast.core.records import Ask, Chunk, Claim, Head, Landed, RequestResult, Slice, Spent
from holdfast.core.states import Lane
from holdfast.store.base.database import Database
from holdfast.store.base.schema import journal, tasks
from holdfast.store.features import open_database
from holdfast.store.protocol import claims, requests
from holdfast.store.protocol import tasks as fenced
from holdfast.store.views import reads

PATIENCE = decide.SilenceLimits()
TTL = 60.0


class World:
    """A database and the moves of a story. Nothing here is waited for: time is moved by hand."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.numbers = itertools.count(1)

    def ask(self, **changes: Any) -> Ask:
        return Ask(**{"kind": "index", "subject": "document:1", "content": "a", **changes})

    def request(self, run_id: str | None = None, **changes: Any) -> RequestResult:
        ask = self.ask(**changes)
        return requests.request(self.db, ask, run_id=run_id or self.db.token(), patience=PATIENCE)

    def claim(
        self, owner: str = "worker", lanes: tuple[str, ...] = tuple(Lane), ttl: float = TTL
    ) -> Claim | None:
        token = self.db.token()
        return claims.claim_best(self.db, lanes=lanes, pipelines=[""], owner=owner, token=token, ttl=ttl)

    def start(self, **changes: Any) -> Claim:
        """A requested document whose plan task is held."""
        assert self.request(**changes).created
        claim = self.claim()
        assert claim is not None
        return claim

    def sliced(self, slices: int = 2, **changes: Any) -> list[Claim]:
        """A planned document, every slice of it held."""
        plan = self.start(**changes)
        assert fenced.plan(self.db, plan, [Slice()] * slices, Spent()) == Landed()
        held = [self.claim(owner=f"worker-{n}") for n in range(slices)]
        return [claim for claim in held if claim is not None]

    def publish(self, chunks: int = 1, **changes: Any) -> Claim:
        """A published generation of so many chunks; the claim that published it."""
        claim = self.start(**changes)
        words = f"{claim.content}-{claim.generation}"
        fenced.stage(self.db, claim, [Chunk(n, f"{words}-{n}") for n in range(chunks)])
        landed = fenced.finish(self.db, claim, spent=Spent(), staged=chunks)
        assert isinstance(landed, Landed)
        assert landed.published
        return claim

    def head(self, subject: str = "document:1", kind: str = "index") -> Head:
        head = reads.head(self.db, "default", kind, subject)
        assert head is not None
        return head

    def task(self, claim: Claim) -> Any:
        return self.row(select(tasks).where(tasks.c.id == claim.task_id))

    def texts(self, head_id: int) -> list[str]:
        seen = reads.visible_chunks(self.db, head_id)
        return [one.chunk.text for one in seen.chunks] if seen else []

    def row(self, query: Any) -> Any:
        return self.db.read(lambda tx: tx.one(query))

    def rows(self, query: Any) -> list[Any]:
        return list(self.db.read(lambda tx: tx.all(query)))

    def write(self, statement: Any) -> None:
        self.db.write("by_hand", lambda tx: tx.execute(statement))

    def set_task(self, claim: Claim, **values: Any) -> None:
        self.write(update(tasks).where(tasks.c.id == claim.task_id).values(**values))

    def lapse(self, claim: Claim) -> None:
        """The lease has run out: its holder died some time ago."""
        self.set_task(claim, lease_until=1.0)

    def journal(self, verb: str | None = None) -> list[tuple[str, str]]:
        query = select(journal.c.verb, journal.c.reason).order_by(journal.c.id)
        return [(row.verb, row.reason) for row in self.rows(query) if verb in {None, row.verb}]

    def count(self, table: Any, *where: Any) -> int:
        return self.row(select(func.count()).select_from(table).where(*where))[0]

    def wipe(self) -> None:
        """Every row is gone: another history may begin."""

        def body(tx: Any) -> None:
            for table in reversed(tasks.metadata.sorted_tables):
                tx.execute(delete(table))

        self.db.write("by_hand", body)

    def picture(self) -> dict[str, list[Any]]:
        """Every row of every table without its times and random ids, to compare two histories."""
        return {
            table.name.removeprefix("holdfast_"): _plain(self.rows(select(table)))
            for table in tasks.metadata.sorted_tables
        }


HIDDEN = {"id", "action_id", "run_id", "token", "task_id", "head_id", "data", "options", "result"}
HIDDEN |= {"number", "cause", "body", "xid"}


def _plain(found: list[Any]) -> list[Any]:
    """Values that must be equal in two equal histories: no ids, no times."""
    return sorted(
        (
            {
                name: re.sub(r"(action|delivery):\w+", r"\1:n", value) if isinstance(value, str) else value
                for name, value in row._asdict().items()
                if name not in HIDDEN and not isinstance(value, float) and not str(value).startswith("run:")
            }
            for row in found
        ),
        key=repr,
    )


def cut() -> exc.OperationalError:
    """What SQLAlchemy raises when the connection went away."""
    return exc.OperationalError(
        "COMMIT", {}, Exception("the connection was lost"), connection_invalidated=True
    )


@contextlib.contextmanager
def failing_once(point: str) -> Iterator[list[str]]:
    """The first time `point` is met, the connection is lost there; answers the points that were met."""
    met: list[str] = []

    def handler(name: str) -> None:
        met.append(name)
        if name == point and met.count(point) == 1:
            raise cut()

    with faults.armed(handler):
        yield met


@pytest.fixture
def lose() -> Callable[[str], contextlib.AbstractContextManager[list[str]]]:
    """The connection is lost once at the named fault point, like finish.committed."""
    return failing_once


def build(url: str) -> World:
    return World(open_database(url, pause=lambda _seconds: None))


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    instance = build(database_url)
    yield instance
    instance.db.close()
