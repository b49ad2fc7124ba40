"""An application whose guarded tasks write into a table of their own; for workers in real processes.

Every start of a task is a row that nothing fences; every effect is a row in a fenced transaction, or in that
which ends the run.
"""

import os
import time

from celery import Celery
from sqlalchemy import Column, Integer, MetaData, String, Table, create_engine, insert

from holdfast import Guard
from holdfast.store.base import dialect

app = Celery("shop", broker=os.environ["SHOP_BROKER"], backend=os.environ["SHOP_BACKEND"])
app.conf.update(
    broker_transport_options={
        "visibility_timeout": float(os.environ.get("SHOP_VISIBILITY", "3600")),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
    task_default_queue=os.environ.get("SHOP_QUEUE", "shop"),
    task_default_queue_type=os.environ.get("SHOP_QUEUE_TYPE", "classic"),
    worker_detect_quorum_queues=os.environ.get("SHOP_QUEUE_TYPE") == "quorum",
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    result_expires=3600,
)
guard = Guard(
    app,
    database=os.environ["SHOP_DATABASE"],
    lease=float(os.environ.get("SHOP_LEASE", "3")),
    sweep_interval=0.5,
)
engine = create_engine(
    dialect.parse(os.environ["SHOP_DATABASE"]),
    connect_args={"timeout": 30} if "sqlite" in os.environ["SHOP_DATABASE"] else {},
)
metadata = MetaData()
starts = Table(
    "shop_starts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String),
    Column("pid", Integer),
)
effects = Table("shop_effects", metadata, Column("id", Integer, primary_key=True), Column("name", String))


def _start(name: str) -> None:
    with engine.begin() as connection:
        connection.execute(insert(starts).values(name=name, pid=os.getpid()))


def _work(name: str, seconds: float) -> None:
    _start(name)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.05)


def _finish(name: str) -> str:
    with engine.begin() as connection:
        connection.execute(insert(effects).values(name=name))
        return guard.finish(connection, name)


@guard.task("order:{name}")
def ship(name, seconds=0.0):
    """Ship an order, which takes a while; an execution that dies after its commit would ship it again."""
    _work(name, seconds)
    with engine.begin() as connection:
        connection.execute(insert(effects).values(name=name))
        guard.fence(connection)
    return name


@guard.task
def pick(name, seconds=0.0):
    """Pick an article, without a key; that and the end of the run are one commit."""
    _work(name, seconds)
    return _finish(name)


@guard.task
def pack(names):
    """Pack what was picked."""
    name = "+".join(sorted(names))
    _work(name, 0.0)
    return _finish(name)


@guard.task(bind=True, max_retries=3)
def weigh(self, name):
    """Weigh an article; the scales always need a second attempt."""
    _work(name, 0.3)
    if not self.request.retries:
        raise self.retry(countdown=0.3)
    return _finish(name)


@guard.task(bind=True)
def exchange(self, name):
    """Pick an article in place of this task."""
    raise self.replace(pick.si(name, 0.3))


@app.task(acks_late=True, reject_on_worker_lost=True, name="tests.guard.shop.plain", shared=False)
def plain(name, seconds=0.0):
    """The same without a guard."""
    _start(name)
    time.sleep(seconds)
    return name
