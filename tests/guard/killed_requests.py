"""A program that forks processes, each of which inserts a row, requests a run and dies around the COMMIT.

    python -m tests.guard.killed_requests DATABASE sqlalchemy|django KILLS

Its last line is JSON: how often a process died at each point. Processes are forked from one that has imported
everything and opened nothing.
"""

import itertools
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from celery import Celery
from django.db import connections, transaction
from sqlalchemy import create_engine, event, text
from sqlalchemy.orm import Session

from holdfast import Guard
from holdfast.store.base import dialect
from tests.django.conftest import configure, entry

# Before the request, after it, when COMMIT is about to be sent, somewhere on its way, and after it.
POINTS = ("row", "requested", "commit", "on its way", "committed")
MOST_ON_ITS_WAY = 0.004
INSERT = "INSERT INTO orders (id) VALUES ({})"
TASK = "killed_requests.build"


def die() -> None:
    """This process is gone at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def dying(point: str) -> Callable[[str], None]:
    """What a process calls at each point on its way."""

    def reached(name: str) -> None:
        if name == point:
            die()
        if name == "commit" and point == "on its way":
            delay = random.uniform(0.0, MOST_ON_ITS_WAY)
            threading.Thread(target=lambda: (time.sleep(delay), die()), daemon=True).start()

    return reached


@contextmanager
def of_sqlalchemy(url: str, reached: Callable[[str], None]) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    """A session in a transaction, and how it executes a statement."""
    engine = create_engine(dialect.parse(url))
    event.listen(engine, "commit", lambda _: reached("commit"))
    with Session(engine) as session, session.begin():
        yield session, lambda statement: session.execute(text(statement))


@contextmanager
def of_django(url: str, reached: Callable[[str], None]) -> Iterator[tuple[Any, Callable[[str], Any]]]:
    """Django's connection in a transaction, and how it executes a statement."""
    configure()
    del connections["default"]
    connections.settings = connections.configure_settings({"default": entry(url)})
    connection = connections["default"]
    commit = connection._commit
    connection._commit = lambda: (reached("commit"), commit())
    with transaction.atomic():
        yield connection, lambda statement: connection.cursor().execute(statement)


OPEN = {"sqlalchemy": of_sqlalchemy, "django": of_django}


def order(url: str, flavour: str, number: int, point: str) -> None:
    """A row and the request for its run, in one transaction, until death."""
    reached = dying(point)
    app = Celery("killed", broker="memory://", backend="cache+memory://", set_as_current=False)
    guard = Guard(app, database=url, sweep=False)
    build = guard.task("order:{number}", name=TASK)(_build)
    guard.runtime()
    with OPEN[flavour](url, reached) as (using, execute):
        execute(INSERT.format(number))
        reached("row")
        build.request(number, using=using)
        reached("requested")
    reached("committed")
    time.sleep(MOST_ON_ITS_WAY * 10)
    os._exit(1)


def _build(number: int) -> None: ...


def main(url: str, flavour: str, kills: str) -> None:
    """The processes have died."""
    died: Counter[str] = Counter()
    for number, point in zip(range(int(kills)), itertools.cycle(POINTS), strict=False):
        pid = os.fork()
        if pid == 0:
            order(url, flavour, number, point)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), f"a process that was to die at {point!r} ended with {status}"
        died[point] += 1
    print(json.dumps(died))


if __name__ == "__main__":
    main(*sys.argv[1:])
