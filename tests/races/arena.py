"""Where the races are run: threads that stop at fault points, processes that die there, and one database.

No race here depends on luck or on a pause of some length. A thread is brought to the very fault point of the
story and held there; that another one waits for its lock is seen in the database; and every wait is for a
predicate, with a deadline that only ends a test that has failed.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import event, func, select, text

from holdfast import faults
from holdfast.core import decide
from holdfast.core.records import Ask, Claim, Head, RequestResult
from holdfast.core.states import Lane
from holdfast.store.base import dialect, schema
from holdfast.store.features import open_database
from holdfast.store.money import calls
from holdfast.store.protocol import claims, duties, requests
from holdfast.store.views import reads

DEADLINE = 60.0
PATIENCE = decide.SilenceLimits()
SUBJECT = "document:1"
UNPROVEN = ("journal", "duties", "turns", "carriers")
"""Tables that tell of work but do not carry it: a refused write may leave a note there."""


def bare(table: Any) -> str:
    """The name of a table without the prefix that all of ours have."""
    return str(table.name.removeprefix("holdfast_"))


def eventually(predicate: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    """The first true answer of `predicate`; the deadline only ends a test that fails."""
    deadline = time.monotonic() + seconds
    while not (answer := predicate()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.005)
    return answer


class Actor:
    """A thread of the story. It may be held at one fault point, the `nth` time it gets there."""

    def __init__(self, name: str, play: Callable[[], Any], stop_at: str | None, nth: int) -> None:
        self.name, self.stop_at, self._left = name, stop_at, nth
        self._play = play
        self._answer: Any = None
        self._error: BaseException | None = None
        self._stands, self._go = threading.Event(), threading.Event()
        self.began = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer = self._play()
        except BaseException as error:  # noqa: BLE001 - raised again by `result`, whatever it is
            self._error = error

    def meet(self, point: str) -> None:
        """Stand still if this is the point."""
        if point != self.stop_at or self._go.is_set():
            return
        self._left -= 1
        if self._left == 0:
            self._stands.set()
            assert self._go.wait(DEADLINE), f"{self.name} was left standing at {point}"

    def stands(self) -> "Actor":
        """This actor, once it stands at its point."""
        eventually(lambda: self._stands.is_set() or not self._thread.is_alive())
        assert self._stands.is_set(), (
            f"{self.name} never came to {self.stop_at}: {self._error or self._answer!r}"
        )
        return self

    @property
    def over(self) -> bool:
        """True when it has nothing more to do."""
        return not self._thread.is_alive()

    def go(self) -> "Actor":
        """Let it go on."""
        self._go.set()
        return self

    def result(self) -> Any:
        """What came of it; it is let go first."""
        self._go.set()
        self._thread.join(DEADLINE)
        assert self.over, f"{self.name} does not end"
        if self._error is not None:
            raise self._error
        return self._answer


class Arena:
    """One database and the moves that the stories have in common."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.db = open_database(url, pool_size=10)
        self._watcher = open_database(url, pool_size=1)
        self._actors: dict[str, Actor] = {}
        event.listen(self.db.engine, "set_connection_execution_options", self._begins)
        faults.arm(self._meet)

    def close(self) -> None:
        """Nothing of the story is left."""
        faults.arm(None)
        for actor in self._actors.values():
            actor.go()
        self.db.close()
        self._watcher.close()

    def _meet(self, point: str) -> None:
        if (actor := self._actors.get(threading.current_thread().name)) is not None:
            actor.meet(point)

    def _begins(self, *_: Any) -> None:
        if (actor := self._actors.get(threading.current_thread().name)) is not None:
            actor.began.set()

    def start(self, play: Callable[[], Any], *, stop_at: str | None = None, nth: int = 1) -> Actor:
        """An actor that plays its part from now on."""
        name = f"actor-{len(self._actors)}"
        ready = threading.Event()

        def in_time() -> Any:
            ready.wait(DEADLINE)
            return play()

        actor = self._actors[name] = Actor(name, in_time, stop_at, nth)
        ready.set()
        return actor

    def waits(self, actor: Actor) -> None:
        """`actor` waits for a lock that another holds, or ended because it did not have to."""
        waiting = text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND wait_event_type = 'Lock'"
        )
        if self.db.postgresql:
            eventually(lambda: actor.over or self._watcher.read(lambda tx: tx.execute(waiting).scalar()))
        else:
            assert actor.began.wait(DEADLINE)  # it asks for the one write lock of SQLite next

    def race(self, *plays: Callable[[], Any]) -> list[Any]:
        """The answers of all plays, begun at the same moment."""
        barrier = threading.Barrier(len(plays))

        def begun(play: Callable[[], Any]) -> Callable[[], Any]:
            return lambda: (barrier.wait(DEADLINE), play())[1]

        return [actor.result() for actor in [self.start(begun(play)) for play in plays]]

    def ask(self, content: str = "a", subject: str = SUBJECT, **fields: Any) -> RequestResult:
        """A request for the subject."""
        patience = fields.pop("patience", PATIENCE)
        ask = Ask(kind=fields.pop("kind", "index"), subject=subject, content=content, **fields)
        return requests.request(self.db, ask, run_id=self.db.token(), patience=patience)

    def try_claim(self, ttl: float = 60.0, owner: str = "worker", **fields: Any) -> Claim | None:
        """The best due task, or None."""
        expected = {"lanes": list(Lane), "pipelines": [""], "token": self.db.token()} | fields
        return claims.claim_best(self.db, owner=owner, ttl=ttl, **expected)

    def claim(self, ttl: float = 60.0, owner: str = "worker", **fields: Any) -> Claim:
        """The best due task; there must be one."""
        claim = self.try_claim(ttl, owner, **fields)
        assert claim is not None, "nothing is due"
        return claim

    def taken(self, content: str = "a", subject: str = SUBJECT, ttl: float = 60.0, **fields: Any) -> Claim:
        """A claim of the only task of a new request; nothing else is due."""
        self.clear()
        assert self.ask(content, subject, **fields).created
        claim = self.claim(ttl)
        assert claim.subject == subject
        return claim

    def clear(self) -> None:
        """Nothing is due: whatever earlier stories left in the queue is out of the way."""
        for task in self.rows("tasks", state="queued"):
            self.set("tasks", {"state": "closed"}, id=task.id)

    def run_out(self, claim: Claim) -> None:
        """The lease of `claim` has run out, as it does when its holder is frozen or dead."""
        past = schema.tasks.update().where(schema.tasks.c.id == claim.task_id).values(lease_until=1.0)
        self.db.write("test", lambda tx: tx.execute(past))

    def expire(self, claim: Claim) -> None:
        """The lease of `claim` has run out and the sweep has seen it."""
        self.run_out(claim)
        assert duties.expire(self.db, cap=99)

    def take_over(self, claim: Claim) -> Claim:
        """Another worker holds the task of `claim` now."""
        self.expire(claim)
        taken = self.claim(owner="successor")
        assert taken.task_id == claim.task_id
        return taken

    def head(self, subject: str = SUBJECT, kind: str = "index", tenant: str = "default") -> Head:
        """The head as it stands."""
        result = reads.head(self.db, tenant, kind, subject)
        assert result is not None
        return result

    def status(self, run_id: str | None) -> str:
        """The status of a run."""
        result = reads.run(self.db, run_id or "")
        assert result is not None
        return result.run.status.value

    def texts(self, subject: str = SUBJECT) -> list[str]:
        """What a reader sees of the subject."""
        return self.texts_of(self.head(subject))

    def texts_of(self, head: Head) -> list[str]:
        """What a reader sees of a head, of any kind."""
        page = reads.visible_chunks(self.db, head.id)
        return [one.chunk.text for one in page.chunks] if page is not None else []

    def rows(self, table: str, **where: Any) -> list[Any]:
        """The rows of a table with these values, by their keys: by itself PostgreSQL keeps no order."""
        source = schema.metadata.tables[f"holdfast_{table}"]
        query = select(source).where(*(source.c[name] == value for name, value in where.items()))
        query = query.order_by(*source.primary_key)
        return list(self.db.read(lambda tx: tx.all(query)))

    def count(self, table: str, **where: Any) -> int:
        """How many rows of a table have these values."""
        return len(self.rows(table, **where))

    def set(self, table: str, values: Mapping[str, Any], **where: Any) -> None:
        """Change rows behind the back of the protocol."""
        source = schema.metadata.tables[f"holdfast_{table}"]
        change = source.update().where(*(source.c[name] == value for name, value in where.items()))
        self.db.write("test", lambda tx: tx.execute(change.values(**values)))

    def picture(self) -> dict[str, list[tuple[Any, ...]]]:
        """All that the database holds, apart from notes."""
        sources = [each for each in schema.metadata.sorted_tables if bare(each) not in UNPROVEN]

        def body(tx: Any) -> dict[str, list[tuple[Any, ...]]]:
            return {bare(each): sorted(map(repr, tx.all(select(*shown(each))))) for each in sources}

        def shown(source: Any) -> list[Any]:
            # Any process may tidy up at any time: that a run was looked through for leftovers proves nothing.
            return [column for column in source.c if column.name != "pruned"]

        return self.db.read(body)

    def verbs(self, head_id: int | None = None) -> list[tuple[str, str]]:
        """(verb, reason) of the journal, oldest first."""
        journal = schema.journal
        query = select(journal.c.verb, journal.c.reason).order_by(journal.c.id)
        if head_id is not None:
            query = query.where(journal.c.head_id == head_id)
        return [(row.verb, row.reason) for row in self.db.read(lambda tx: tx.all(query))]

    def now(self) -> float:
        """The clock of the database."""
        return self.db.read(lambda tx: tx.execute(select(dialect.now())).scalar_one())

    def largest(self, table: str, column: str) -> Any:
        """The largest value of a column."""
        source = schema.metadata.tables[f"holdfast_{table}"]
        return self.db.read(lambda tx: tx.execute(select(func.max(source.c[column]))).scalar())

    def intend(self, claim: Claim, *texts: str, keyed: bool = True, weight: int = 10) -> Any:
        """An order of `claim` for these texts, with its price reserved and not yet sent."""
        return calls.intend(self.db, claim, self._draft(texts, keyed, weight))

    def send_at_once(self, claim: Claim, *texts: str) -> Any:
        """An order of `claim` for these texts, with its price reserved and marked sent."""
        return calls.send_at_once(self.db, claim, self._draft(texts, keyed=True, weight=10))

    def _draft(self, texts: Sequence[str], keyed: bool, weight: int) -> calls.OrderDraft:
        return calls.OrderDraft(
            id=self.db.token(),
            provider="meter",
            endpoint="embeddings",
            model="small",
            weights=dict.fromkeys(texts, weight),
            encode=lambda mine: "\n".join(mine).encode(),
            keyed=keyed,
            deadline=30.0,
            stale_after=60.0,
            scopes=("tenant",),
        )
