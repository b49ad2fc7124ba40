"""Wake-ups on their way to the brokers, sent by a thread so that nobody waits for them.

A request has committed when its wake-up is handed in here; whether the broker is up, slow or gone does not
concern it any more. The thread publishes to every broker that is set, remembers which one failed and leaves
that one alone for a while: the sweep wakes again for whatever is still due.

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
from holdfast.settings import Settings
from holdfast.worker import queues
from holdfast.worker.brokers import MOST_OUTSTANDING, Broker, Tuning, broker, told

BACKOFF = Backoff(first=0.5, factor=2.0, most=15.0)
MOST_WAITING = 1000
CLOSE_PATIENCE = 4.0
# A connection that was not used for this long is made anew: nobody sends its heartbeats, so that RabbitMQ
# ends it after a minute, and networks forget it sooner or later without a word.
IDLE = 25.0

log = logging.getLogger(__name__)

Message = tuple[str, str, tuple[object, ...]]
"""Task name, lane, arguments."""


@dataclass(slots=True)
class _Line:
    """The state of one broker, kept by the sending thread."""

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
        """A wake-up for `lane` will be sent."""
        self._hand_in((queues.WAKE, lane, (lane,)))

    def wake_task(self, task_id: int, lane: str) -> None:
        """A message that names this task will be sent to the workers of its lane."""
        self._hand_in((queues.DELIVER, lane, (task_id,)))

    def _hand_in(self, message: Message) -> None:
        if self._pid != os.getpid():
            self._begin()  # the parent's thread and sockets did not come along
        if self._waiting.qsize() >= MOST_WAITING:
            self.refused += 1
            return
        self._waiting.put(message)
        if self._is_at_rest():
            with self._lock:
                if self._is_at_rest():
                    self._thread = threading.Thread(target=self._run, name="holdfast-sender", daemon=True)
                    self._thread.start()

    def _is_at_rest(self) -> bool:
        return self._thread is None or not self._thread.is_alive()

    def close(self) -> None:
        """What was handed in has been sent, or the brokers took too long."""
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
            self._publish_or_again(line, message)
        except Exception as error:  # noqa: BLE001 - outermost loop: every library below has errors of its own
            _close(line)
            line.failures += 1
            line.quiet_until = boot_time() + BACKOFF.delay(line.failures, 0.5)
            self.failed += 1
            log.warning(
                "broker %s: a wake-up was not sent (%s); the sweep wakes again", line.broker, told(error)
            )
        else:
            line.failures = 0
            line.used_at = boot_time()

    def _publish_or_again(self, line: _Line, message: Message) -> None:
        """The message is published, over a new connection if the one at hand has broken meanwhile."""
        kept = line.connection is not None
        try:
            self._publish(line, message)
        except Exception as error:
            if not kept:
                raise
            log.debug("broker %s: %s; connecting anew", line.broker, told(error))
            _close(line)
            self._publish(line, message)

    def _publish(self, line: _Line, message: Message) -> None:
        task, lane, arguments = message
        if line.connection is None:
            line.broker.prepare()
            line.connection = line.broker.connection()
        if line.broker.sort != "rabbitmq" and self._full(line, lane):
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
            self.refused += 1  # RabbitMQ has enough of them
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
    """What the settings say about brokers in general."""
    return Tuning(
        settings.broker_visibility_timeout, settings.broker_restore_interval, settings.broker_ca_file
    )


def published(settings: Settings) -> list[Broker]:
    """Every broker that wake-ups go to."""
    return [broker(url.get_secret_value(), tuning(settings)) for url in settings.broker_urls]


def open_sender(settings: Settings) -> CelerySender:
    """A sender by these settings, for any process that makes requests. Nothing is opened yet."""
    app = Celery("holdfast-sender", set_as_current=False)
    app.conf.update(task_serializer="json", task_ignore_result=True, task_queues=queues.all_lanes())
    return CelerySender(app, published(settings))
