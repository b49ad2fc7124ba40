"""Celery's consumer, with clear log lines for messages it cannot handle, and no queues for countdowns."""

import logging
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from celery.worker.consumer.consumer import Consumer as CeleryConsumer
from celery.worker.state import maybe_shutdown

from holdfast.clock import boot_time
from holdfast.core.retry import Backoff
from holdfast.worker import brokers, queues

log = logging.getLogger(__name__)

# A warning for every so many failed connection attempts.
LOG_EVERY = 10
# A connection that breaks sooner than this counts as failed, in seconds.
SHORT_LIVED = 10.0
PAUSE = Backoff(first=0.5, factor=2.0, most=10.0)
# Countdowns are in the database (`due_at`); Celery would declare 28 queues for them on RabbitMQ.
_UNUSED = {"celery.worker.consumer.delayed_delivery:DelayedDelivery"}


class Consumer(CeleryConsumer):
    """The consumer in a worker's main process."""

    class Blueprint(CeleryConsumer.Blueprint):
        """Celery's steps, without the one for countdowns."""

        default_steps: ClassVar[list[str]] = [
            step for step in CeleryConsumer.Blueprint.default_steps if step not in _UNUSED
        ]

    strangers = 0
    _connected_at = 0.0
    _short_lived = 0

    def ensure_connected(self, conn: Any) -> Any:
        """The connection, once a broker answers. Celery would pause up to half a minute between attempts."""
        attempts = 0

        def log_failure(error: Exception, interval: float) -> None:
            nonlocal attempts
            if attempts % LOG_EVERY == 0:
                log.warning(
                    "the broker %s does not answer (%s); retrying every few seconds",
                    self._shown(conn),
                    brokers.one_line(error),
                )
            attempts += interval > 0

        connection = conn.ensure_connection(
            log_failure, None, interval_start=0.5, interval_step=0.5, interval_max=3, callback=maybe_shutdown
        )
        self.first_connection_attempt = False
        self._connected_at = boot_time()
        self._keep_dead_letters(connection)
        log.info("consuming from %s", self._shown(connection))
        return connection

    def _shown(self, connection: Any) -> str:
        """The connected broker, without its password."""
        endpoint = connection.hostname, connection.port
        consumed: Sequence[brokers.Broker] = self.app.consumed
        return str(next((each for each in consumed if each.endpoint == endpoint), consumed[0]))

    def _keep_dead_letters(self, connection: Any) -> None:
        try:
            queues.declare_dead_letters(connection)
        except self.connection_errors + self.channel_errors as error:
            log.warning(
                "the broker %s has no dead-letter queue (%s); rejected messages are dropped",
                self._shown(connection),
                brokers.one_line(error),
            )

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        """Close the connection and reconnect, with a growing pause if it keeps breaking at once.

        Celery would retry without a pause: a queue that RabbitMQ refuses to share led to a hundred attempts,
        and log lines, a second.
        """
        shown = self._shown(self.connection)
        super().on_connection_error_after_connected(exc)
        lasted = boot_time() - self._connected_at
        self._short_lived = self._short_lived + 1 if lasted < SHORT_LIVED else 0
        hint = "; delete that queue or use a separate virtual host" if "PRECONDITION" in str(exc) else ""
        log.warning("lost the connection to %s (%s); reconnecting%s", shown, brokers.one_line(exc), hint)
        until = boot_time() + (PAUSE.delay(self._short_lived, 0.5) if self._short_lived else 0.0)
        while boot_time() < until:
            maybe_shutdown()
            time.sleep(0.1)

    def on_unknown_message(self, body: Any, message: Any) -> None:
        """Reject what is not a Celery message."""
        del body
        self._set_aside(message, "it is not a Celery message")

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Reject a message for a task of another app or release."""
        del body, exc
        name = message.headers.get("task") if isinstance(message.headers, dict) else None
        self._set_aside(message, f"it asks for {name!r}, which is not a task of Holdfast")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Reject a message with pickled or otherwise forbidden content."""
        del body
        self._set_aside(message, f"it cannot be read ({exc})")

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Reject a message that is not JSON."""
        self._set_aside(message, f"it cannot be read ({exc})")

    def _set_aside(self, message: Any, why: str) -> None:
        self.strangers += 1
        queue = (message.delivery_info or {}).get("routing_key", "?")
        log.warning(queues.SET_ASIDE, f"queue {queue}", " ".join(why.split())[:300])
        message.reject_log_error(log, self.connection_errors)
