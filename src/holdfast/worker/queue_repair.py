"""Queues of RabbitMQ that are there and do not answer.

A quorum queue that was made shortly before its server was killed may come back without a leader: it can be
declared, but whoever consumes or reads it waits for ever, with heartbeats going on meanwhile. It holds
nothing but wake-ups, so it is deleted; the next worker or sender makes it again.
"""

import logging
import socket
from collections.abc import Iterable

from amqp.exceptions import AMQPError

from holdfast.worker import queues
from holdfast.worker.brokers import Broker

PATIENCE = 5.0

log = logging.getLogger(__name__)


def mend(brokers: Iterable[Broker], lanes: Iterable[str]) -> list[str]:
    """Every queue of these lanes answers or is on its way to be gone; answers which those are."""
    wanted = list(lanes)
    return [
        queues.name(lane)
        for broker in brokers
        if broker.sort == "rabbitmq"
        for lane in wanted
        if not _answers(broker, lane) and _deleted(broker, lane)
    ]


def _answers(broker: Broker, lane: str) -> bool:
    """True when a message can be read from the queue, or it is not there, or the server is not."""
    try:
        with broker.connection() as connection:
            channel = connection.channel()
            connection.connection.transport.sock.settimeout(PATIENCE)
            channel.basic_get(queues.name(lane), no_ack=True)  # one wake-up less says nothing less
    except TimeoutError:
        return False
    except (AMQPError, OSError) as error:
        log.debug("queue %s: %s", queues.name(lane), error)
    return True


def _deleted(broker: Broker, lane: str) -> bool:
    log.warning("queue %s does not answer and is made anew; nothing is lost with it", queues.name(lane))
    try:
        with broker.connection() as connection:
            channel = connection.channel()
            connection.connection.transport.sock.settimeout(PATIENCE)
            channel.queue_delete(queues.name(lane))
    except (AMQPError, OSError) as error:
        # It takes the server a while to give such a queue up; the answer often comes too late.
        log.debug("queue %s: %s", queues.name(lane), error)
    return True


def hang_up(connection: object) -> None:
    """Whoever waits on this connection is told that it is lost; to be called from another thread."""
    amqp = getattr(connection, "_connection", None)
    sock = getattr(getattr(amqp, "transport", None), "sock", None)
    if isinstance(sock, socket.socket):
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("hanging up: %s", error)
