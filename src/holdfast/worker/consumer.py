"""Celery's consumer, with plain words for messages that cannot be handled, and no queues for countdowns."""

import logging
from typing import Any, ClassVar

from celery.worker.consumer.consumer import Consumer as CeleryConsumer
from celery.worker.state import maybe_shutdown

log = logging.getLogger(__name__)

# Countdowns are the database's affair (`due_at`); Celery would declare 28 queues for them on RabbitMQ.
TOLD_EVERY = 10
_UNUSED = {"celery.worker.consumer.delayed_delivery:DelayedDelivery"}


class Consumer(CeleryConsumer):
    """What Celery starts in a worker's main process."""

    class Blueprint(CeleryConsumer.Blueprint):
        """Celery's steps, without the one for countdowns."""

        default_steps: ClassVar[list[str]] = [
            step for step in CeleryConsumer.Blueprint.default_steps if step not in _UNUSED
        ]

    strangers = 0

    def ensure_connected(self, conn: Any) -> Any:
        """The connection, once a broker answers. Celery pauses for up to half a minute between tries."""
        tries = 0

        def told(error: Exception, interval: float) -> None:
            nonlocal tries
            if tries % TOLD_EVERY == 0:
                log.warning(
                    "the broker %s does not answer (%s: %s); trying again every few seconds",
                    conn.as_uri(),
                    type(error).__name__,
                    " ".join(str(error).split()),
                )
            tries += interval > 0

        made = conn.ensure_connection(
            told, None, interval_start=0.5, interval_step=0.5, interval_max=3, callback=maybe_shutdown
        )
        self.first_connection_attempt = False
        log.info("consuming from %s", made.as_uri())
        return made

    def on_unknown_message(self, body: Any, message: Any) -> None:
        """A message that is no Celery message is set aside."""
        del body
        self._set_aside(message, "it is not a Celery message")

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        """A message for a task of another app, or of another release, is set aside."""
        del body, exc
        name = message.headers.get("task") if isinstance(message.headers, dict) else None
        self._set_aside(message, f"it asks for {name!r}, which is not a task of Holdfast")

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """A message with the wrong arguments is set aside."""
        del body
        self._set_aside(message, f"its arguments are not understood ({exc})")

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """A message that is not JSON is set aside."""
        self._set_aside(message, f"it cannot be read ({exc})")

    def _set_aside(self, message: Any, why: str) -> None:
        self.strangers += 1
        queue = (message.delivery_info or {}).get("routing_key", "?")
        log.warning(
            "a message on queue %s was set aside: %s. No work is lost, the database knows what is due; "
            "look for another app that uses the same broker",
            queue,
            " ".join(why.split())[:300],
        )
        message.reject_log_error(log, self.connection_errors)
