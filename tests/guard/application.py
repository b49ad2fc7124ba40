"""Somebody's Celery application with guarded tasks, and workers of it in threads of this process."""

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from celery import Celery

from holdfast import Guard
from holdfast.guard import outgoing
from holdfast.guard.worker_requests import GuardedRequest
from holdfast.store.guarded import messages


def until(done: Callable[[], object], seconds: float = 20.0) -> None:
    """Return when something is true."""
    give_up = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.01)


class GuardedApp:
    """An application on a broker in memory. Nothing is swept unless a test asks for it."""

    def __init__(
        self, url: str, *, broker: str = "memory://", backend: str = "cache+memory://", **options: Any
    ) -> None:
        name = f"app-{secrets.token_hex(4)}"
        self.celery = Celery(name, broker=broker, backend=backend, set_as_current=False)
        self.celery.conf.update(task_default_queue=name, broker_transport_options={"polling_interval": 0.01})
        self.guard = Guard(self.celery, database=url, sweep=False, **options)
        self.url = url

    @contextlib.contextmanager
    def worker(self, threads: int = 3) -> Iterator[None]:
        """Deliveries are carried out during the block, as a worker of Celery does that in one process."""
        stop = threading.Event()
        workers = [threading.Thread(target=self._work, args=(stop,), daemon=True) for _ in range(threads)]
        for worker in workers:
            worker.start()
        try:
            yield
        finally:
            stop.set()
            for worker in workers:
                worker.join(10)

    def _work(self, stop: threading.Event) -> None:
        with self.celery.connection() as connection:
            queue = connection.SimpleQueue(self.celery.conf.task_default_queue)
            while not stop.is_set():
                try:
                    message = queue.get(timeout=0.05)
                except queue.Empty:
                    continue
                self.execute(message)
                message.ack()

    def next_message(self) -> Any:
        """The message that the broker has for a worker, acknowledged already."""
        with self.celery.connection() as connection:
            message = connection.SimpleQueue(self.celery.conf.task_default_queue).get(timeout=5)
            message.ack()
            return message

    def flush(self) -> int:
        """The broker loses what it has; how many messages that were."""
        with self.celery.connection() as connection:
            queue = connection.SimpleQueue(self.celery.conf.task_default_queue)
            return int(queue.clear() or 0)

    def execute(self, message: Any) -> None:
        """A worker executes a message."""
        task = self.celery.tasks[message.headers["task"]]
        request = GuardedRequest(message, app=self.celery, task=task, hostname="test")
        if request.eta is not None:
            time.sleep(max(0.0, request.eta.timestamp() - time.time()))
        request.execute()

    def sweep(self) -> None:
        """One round of the sweep."""
        self.guard.sweeper.round(self.guard.runtime())

    def sweep_until(self, done: Callable[[], object], seconds: float = 20.0) -> None:
        """Sweep until something is true."""
        give_up = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < give_up, "it did not happen"
            self.sweep()
            time.sleep(0.05)

    def deliver_again(self, run_id: str) -> None:
        """The broker delivers the message of a run once more."""
        message = messages.of_run(self.guard.runtime().db, run_id)
        assert message is not None
        task = self.celery.tasks[message.task_name]
        task.publish(outgoing.call_of(message), message.celery_id, headers={outgoing.RUN_HEADER: run_id})

    def close(self) -> None:
        """The database is closed."""
        self.guard.close()
