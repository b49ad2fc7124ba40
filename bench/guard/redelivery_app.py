"""The application of `bench.guard.redelivery`: a slow task, guarded and in every way that is installed."""

import importlib.util
import os
import time

import redis
from celery import Celery

from holdfast import Guard

URL = os.environ["BENCH_REDIS"]
SECONDS = float(os.environ.get("BENCH_SECONDS", "9"))

app = Celery("bench", broker=URL, backend=URL)
app.conf.update(
    broker_transport_options={
        "visibility_timeout": float(os.environ.get("BENCH_VISIBILITY", "2")),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    },
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)
guard = Guard(app, database=os.environ["BENCH_DATABASE"])
counter = redis.Redis.from_url(URL)


def _work(way: str, number: int) -> None:
    """Count the start, then take a while."""
    counter.hincrby("bench-starts", f"{way}:{number}", 1)
    time.sleep(SECONDS)
    counter.hincrby("bench-ends", f"{way}:{number}", 1)


@guard.task("order:{number}", name="bench.guarded")
def guarded(number: int) -> None:
    """With a guard."""
    _work("guarded", number)


@app.task(name="bench.plain", acks_late=True)
def plain(number: int) -> None:
    """Plain Celery."""
    _work("plain", number)


WAYS = {"guarded": guarded, "plain": plain}

if importlib.util.find_spec("celery_once"):
    from celery_once import QueueOnce

    app.conf.ONCE = {
        "backend": "celery_once.backends.Redis",
        "settings": {"url": URL, "default_timeout": 3600},
    }

    @app.task(name="bench.once", base=QueueOnce, acks_late=True)
    def once(number: int) -> None:
        """With celery-once."""
        _work("celery-once", number)

    WAYS["celery-once"] = once

if importlib.util.find_spec("celery_singleton"):
    from celery_singleton import Singleton

    @app.task(name="bench.singleton", base=Singleton, acks_late=True)
    def singleton(number: int) -> None:
        """With celery-singleton."""
        _work("celery-singleton", number)

    WAYS["celery-singleton"] = singleton

if importlib.util.find_spec("celery_heimdall"):
    from celery_heimdall import HeimdallTask

    @app.task(
        name="bench.heimdall",
        base=HeimdallTask,
        acks_late=True,
        heimdall={"unique": True, "unique_timeout": 3600},
    )
    def heimdall(number: int) -> None:
        """With celery-heimdall."""
        _work("celery-heimdall", number)

    WAYS["celery-heimdall"] = heimdall
