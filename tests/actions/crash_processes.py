"""Processes that ask, index, follow up and deliver, each of which dies by SIGKILL at a point of its own."""

import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

from holdfast import faults
from holdfast.chaos.waiting import until
from holdfast.core import retry
from holdfast.core.errors import WorkError
from holdfast.core.records import Ask, Chunk
from holdfast.engine.engine import Engine, EngineDependencies
from holdfast.engine.host import ThreadHost
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import Duty, SweepRules
from holdfast.kinds import webhook
from holdfast.leases.base import LeaseTerms
from holdfast.leases.sql import SqlLeases
from holdfast.service.actions import Visits
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.store.follow_ups import actions, deliveries, delivery_attempts
from tests.races import actor

# There is one such server in a process; whoever asks last says what it has imported, so all of it is named.
CONTEXT = actor.CONTEXT
CONTEXT.set_forkserver_preload(["pytest", "tests.races.actor", "tests.actions.crash_processes"])
TENANTS = ("one", "two")
SECRET = "a secret of the receiver"
DEADLINE = 120.0
RULES = webhook.DeliveryRules(
    seconds=10.0, backoff=retry.Backoff(first=0.02, factor=1.0, most=0.02), allow_private=True
)


def read_aloud(work: Any) -> None:
    """A document is its content; one that wants to fail does."""
    if work.content == "fail":
        raise WorkError("as it wished")
    work.stage([Chunk(0, work.content)])


def noted(work: Any) -> dict[str, str]:
    """A follow-up whose result says what it was for."""
    return {"for": work.content}


def engine(url: str) -> Engine:
    """One process with all that is needed, and short leases."""
    db, host = open_database(url, pool_size=4), ThreadHost()
    kinds = [
        Kind("index", read_aloud),
        Kind("job", read_aloud),
        Kind("note", noted),
        webhook.Webhook(db, host, RULES).kind(),
    ]
    parts = EngineDependencies(
        kinds=kinds,
        host=host,
        leases=SqlLeases(db, LeaseTerms(2.0, 0.5, 0.3)),
        rules=SweepRules(interval=0.5, tidy_every=0.5, attempt_cap=50),
        duties=(Duty("visits", 0.5, Visits(db)),),
    )
    return Engine(db, parts)


def tell(db: Database, receiver: str) -> None:
    """Both tenants' collections have a webhook and a follow-up; asking again adds nothing."""
    for tenant in TENANTS:
        about = {"tenant": tenant, "collection": "books", "most": 2}
        hook = {"sort": "webhook", "url": f"{receiver}/{tenant}"}
        actions.add_action(
            db,
            kind=deliveries.KIND,
            options=hook,
            pipeline=deliveries.PIPELINE,
            secret=SECRET,
            token="hook",
            **about,
        )
        actions.add_action(db, kind="note", options={}, pipeline="note@1", token="note", **about)


class Requester:
    """Whoever asks for what there is to tell of: under names of its own, a little more in each turn."""

    def __init__(self, worker: Engine, receiver: str, number: int) -> None:
        self.worker, self.receiver, self.number = worker, receiver, number
        self.tenant = TENANTS[number % len(TENANTS)]

    def document(self, turn: int) -> None:
        """Every other turn it is an older one with new content."""
        self._ask("index", f"document:{self.number}-{turn // 2}", f"content {turn}")

    def jobs(self, turn: int) -> None:
        """One that ends by itself and one that is ended: cancelled in even turns, superseded in odd ones."""
        self._ask("job", f"ends:{self.number}-{turn}", ("well", "fail")[turn % 2], "gone" if turn % 2 else "")
        ended = self._ask("job", f"ended:{self.number}-{turn}", "first")
        if turn % 2:
            self._ask("job", f"ended:{self.number}-{turn}", "second")
        else:
            self.worker.cancel(ended.head_id)

    def again(self) -> None:
        """The event that was delivered last is to be sent once more."""
        for sent in delivery_attempts.page(self.worker.db, self.tenant, state="delivered", limit=1):
            delivery_attempts.resend(self.worker.db, self.tenant, sent.id, run_id=self.worker.db.token())

    def _ask(self, kind: str, subject: str, content: str, path: str = "") -> Any:
        callback = {"url": f"{self.receiver}/{self.tenant}/{path}", "secret": SECRET}
        ask = Ask(kind, subject, content=content, tenant=self.tenant, collection="books", actor="test")
        if kind == "job":
            ask = Ask(kind, subject, content=content, tenant=self.tenant, callback=callback)
        return self.worker.request(ask)


def live(worker: Engine, receiver: str, number: int, turns: Sequence[int]) -> None:
    """In each turn: tell the collections what to do, ask for more, and work until nothing is due."""
    asker = Requester(worker, receiver, number)
    with worker:
        for step in turns:
            tell(worker.db, receiver)
            asker.document(step)
            asker.jobs(step)
            worker.work_off()
            asker.again()
            worker.work_off()
            worker.sweep()


def finish(worker: Engine) -> None:
    """Nothing is left to be done; what the dead have begun is for the sweep to go on with."""
    worker.run_until_idle(patience=60.0)
    until(lambda: worker.sweep() and not actions.unvisited(worker.db, 1), DEADLINE, "all are visited")
    worker.run_until_idle(patience=60.0)


def passed(url: str, receiver: str) -> list[str]:
    """Every fault point that such a life passes in peace, in the order of the first time.

    Only those of its main thread: whether a lease is renewed depends on how busy the machine is.
    """
    met: dict[str, None] = {}
    main = threading.get_ident()

    def note(point: str) -> None:
        if threading.get_ident() == main:
            met[point] = None

    worker = engine(url)
    with faults.armed(note):
        live(worker, receiver, 0, range(4))  # its receiver has moods: in two turns perhaps nothing arrives
        finish(worker)
    worker.db.close()
    return list(met)


def perform(url: str, receiver: str, go: Any, at: str, number: int) -> None:
    """The life of a process. One that is to die asks for more until it does; a survivor asks for nothing."""

    def die(point: str) -> None:
        if point == at:
            os.kill(os.getpid(), signal.SIGKILL)

    worker = engine(url)
    if at:
        go.wait(DEADLINE)
        faults.arm(die)
        live(worker, receiver, number, range(MOST_TURNS))
        faults.arm(None)
    else:
        finish(worker)
    worker.db.close()


MOST_TURNS = 200
"""Of eight who share the work nobody is sure to meet a point in its first turn; the last alive is."""


def started(url: str, receiver: str, go: Any = None, at: str = "", number: int = 0) -> Any:
    """A process that begins when all wait at `go`, and dies when it gets to `at`."""
    process = CONTEXT.Process(target=perform, args=(url, receiver, go, at, number), daemon=True)
    process.start()
    return process
