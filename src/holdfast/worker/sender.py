"""Sends wake-ups to the brokers from a thread, so that requests do not wait for them.

A request has committed when its wake-up is queued here, so a slow or unreachable broker does not affect it.
The thread publishes to every configured broker and pauses one that failed: the sweep wakes workers again for
whatever is still due.

Not covered: a process that ends before its last wake-up was sent (`close` waits a little). The sweep finds
that work within its interval.
"""

import logging
import os
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from celery import Celery
from kombu import Connection
from kombu.exceptions import OperationalError

from holdfast.clock import boot_time
from holdfast.core.retry import Backoff
from holdfast.core.states import LANE_RANK
from holdfast.settings import Settings
from holdfast.worker import queues
from holdfast.worker.brokers import MOST_OUTSTANDING, Broker, Tuning, broker, one_line

BACKOFF = Backoff(first=0.5, factor=2.0, most=15.0)
MOST_WAITING = 1000
CLOSE_PATIENCE = 4.0
# A connection idle for this long is reopened: nobody sends its heartbeats, so RabbitMQ closes it after a
# minute, and networks drop it silently.
IDLE = 25.0

log = logging.getLogger(__name__)

Message = tuple[str, str, tuple[object, ...]]
"""Task name, lane, arguments."""


@dataclass(slots=True)
class _Line:
    """The state of one broker, owned by the sending thread."""

    broker: Broker
    connection: Connection | None = None
    used_at: float = 0.0
    failures: int = 0
    quiet_until: float = 0.0


class CelerySender:
    """Publishes wake-ups to every broker of a list. Safe to use before and after a fork."""

    def __init__(self, app: Celery, brokers: Sequence[Broker]) -> None:
        self._app = app
        self._brokers = tuple(brokers)
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._waiting: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._lines = [_Line(each) for each in self._brokers]
        self.sent = self.refused = self.failed = 0

    def wake(self, lane: str) -> None:
        """Queue a wake-up for `lane`; guarded tasks are left to the workers of their application."""
        if lane not in LANE_RANK:
            return
        self._enqueue((queues.WAKE, lane, (lane,)))

    def wake_task(self, task_id: int, lane: str) -> None:
        """Queue a message that names this task, for the workers of its lane."""
        self._enqueue((queues.DELIVER, lane, (task_id,)))

    def _enqueue(self, message: Message) -> None:
        if self._pid != os.getpid():
            self._begin()  # after a fork the parent's thread and sockets are unusable
        if self._waiting.qsize() >= MOST_WAITING:
            self.refused += 1
            return
        self._waiting.put(message)
        if self._is_idle():
            with self._lock:
                if self._is_idle():
                    self._thread = threading.Thread(target=self._run, name="holdfast-sender", daemon=True)
                    self._thread.start()

    def _is_idle(self) -> bool:
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """Wait until all queued wake-ups are sent, but not longer than `CLOSE_PATIENCE`."""
        if self._pid == os.getpid() and self._thread is not None:
            self._waiting.put(None)
            self._thread.join(CLOSE_PATIENCE)

    def _run(self) -> None:
        while (message := self._waiting.get()) is not None:
            for line in self._lines:
                self._send(line, message)
        for line in self._lines:
            _close(line)

    def _send(self, line: _Line, message: Message) -> None:
        now = boot_time()
        if now < line.quiet_until:
            self.failed += 1
            return
        if now - line.used_at > IDLE:
            _close(line)
        try:
            self._publish_with_retry(line, message)
        except Exception as error:  # noqa: BLE001 - outermost loop: each library below has its own errors
            _close(line)
            line.failures += 1
            line.quiet_until = boot_time() + BACKOFF.delay(line.failures, 0.5)
            self.failed += 1
            log.warning(
                "broker %s: a wake-up was not sent (%s); the sweep will send another",
                line.broker,
                one_line(error),
            )
        else:
            line.failures = 0
            line.used_at = boot_time()

    def _publish_with_retry(self, line: _Line, message: Message) -> None:
        """Publish the message, over a new connection if the existing one has broken."""
        reused = line.connection is not None
        try:
            self._publish(line, message)
        except Exception as error:  # each driver has its own errors for a connection that has broken
            if not reused:
                raise
            log.debug("broker %s: %s; reconnecting", line.broker, one_line(error))
            _close(line)
            self._publish(line, message)

    def _publish(self, line: _Line, message: Message) -> None:
        task, lane, arguments = message
        if line.connection is None:
            line.broker.prepare()
            line.connection = line.broker.connection()
        if line.broker.kind != "rabbitmq" and self._full(line, lane):
            self.refused += 1
            return
        try:
            with line.connection.Producer(auto_declare=False) as producer:
                self._app.send_task(
                    task, args=arguments, queue=queues.of_lane(lane), producer=producer, retry=False
                )
        except OperationalError as error:
            if type(error.__cause__).__name__ != "MessageNacked":
                raise
            self.refused += 1  # the queue is full
        else:
            self.sent += 1

    def _full(self, line: _Line, lane: str) -> bool:
        if line.connection is None:
            return False
        return line.broker.outstanding(line.connection, queues.name(lane)) >= MOST_OUTSTANDING


def _close(line: _Line) -> None:
    if line.connection is not None:
        try:
            line.connection.collect(socket_timeout=1)
        except Exception as error:  # noqa: BLE001 - a broken connection may break in any way
            log.debug("broker %s: %s", line.broker, error)
        line.connection = None


def tuning(settings: Settings) -> Tuning:
    """The settings that apply to all brokers."""
    return Tuning(
        settings.broker_visibility_timeout, settings.broker_restore_interval, settings.broker_ca_file
    )


def published(settings: Settings) -> list[Broker]:
    """Every broker that wake-ups are sent to."""
    return [broker(url.get_secret_value(), tuning(settings)) for url in settings.broker_urls]


def open_sender(settings: Settings) -> CelerySender:
    """A sender for any process that makes requests. Opens no connection yet."""
    app = Celery("holdfast-sender", set_as_current=False)
    app.conf.update(task_serializer="json", task_ignore_result=True, task_queues=queues.all_lanes())
    return CelerySender(app, published(settings))
