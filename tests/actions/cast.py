"""Processes that index, follow up and deliver, each of which dies by SIGKILL at a fault point of its own."""

import os
import signal
from typing import Any

from holdfast import faults
from holdfast.core import retry
from holdfast.core.records import Chunk
from holdfast.engine.engine import Engine, Parts
from holdfast.engine.host import ThreadHost
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import Duty, Rules
from holdfast.kinds import webhook
from holdfast.leases.base import Terms
from holdfast.leases.sql import SqlLeases
from holdfast.service.actions import Visits
from holdfast.store import actions, deliveries
from holdfast.store.database import Database
from tests.acceptance.patience import until
from tests.races import actor

# There is one such server in a process; whoever asks last says what it has imported, so all of it is named.
CONTEXT = actor.CONTEXT
CONTEXT.set_forkserver_preload(["pytest", "tests.races.actor", "tests.actions.cast"])
TENANTS = ("one", "two")
DEADLINE = 120.0
RULES = webhook.Rules(
    seconds=10.0, backoff=retry.Backoff(first=0.02, factor=1.0, most=0.02), allow_private=True
)


def read_aloud(work: Any) -> None:
    work.stage([Chunk(0, work.content)])


def noted(work: Any) -> dict[str, str]:
    """A follow-up whose result says what it was for."""
    return {"for": work.content}


def engine(url: str) -> Engine:
    """One process with all that is needed, and short leases."""
    db, host = Database(url, pool_size=4), ThreadHost()
    kinds = [
        Kind("index", read_aloud),
        Kind("note", noted),
        webhook.Webhook(db, host, RULES).kind(),
    ]
    parts = Parts(
        kinds=kinds,
        host=host,
        leases=SqlLeases(db, Terms(2.0, 0.5, 0.3)),
        rules=Rules(interval=0.5, tidy_every=0.5, attempt_cap=50),
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
            secret="a secret of the receiver",
            token="hook",
            **about,
        )
        actions.add_action(db, kind="note", options={}, pipeline="note@1", token="note", **about)


def perform(url: str, receiver: str, go: Any, at: str, nth: int) -> None:
    """The life of a process: tell the collections what to do, then work until there is nothing left.

    One that is to survive tells them nothing: what the dead have begun is for the sweep to go on with.
    """
    left = nth

    def die(point: str) -> None:
        nonlocal left
        if point == at:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    worker = engine(url)
    if go is not None:
        go.wait(DEADLINE)
    faults.arm(die)
    if at:
        tell(worker.db, receiver)
    worker.run_until_idle(patience=60.0)
    if not at:
        until(lambda: worker.sweep() and not actions.unvisited(worker.db, 1), DEADLINE, "all are visited")
        worker.run_until_idle(patience=60.0)
    worker.db.close()


def started(url: str, receiver: str, go: Any = None, at: str = "", nth: int = 1) -> Any:
    """A process that begins when all wait at `go`, and dies the `nth` time it gets to `at`."""
    process = CONTEXT.Process(target=perform, args=(url, receiver, go, at, nth), daemon=True)
    process.start()
    return process
