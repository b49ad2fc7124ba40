"""RabbitMQ queues that exist but do not answer.

A quorum queue created shortly before its server was killed may come back without a leader: it can be
declared, but consumers wait for ever while heartbeats go on. It holds only wake-ups, so it is deleted; the
next worker or sender declares it again.
"""

import logging
import socket
from collections.abc import Iterable

from amqp.exceptions import AMQPError

from holdfast.worker import queues
from holdfast.worker.brokers import Broker

PATIENCE = 5.0

log = logging.getLogger(__name__)


def repair(brokers: Iterable[Broker], lanes: Iterable[str]) -> list[str]:
    """Delete the queues of these lanes that do not answer; returns their names."""
    lanes = list(lanes)
    return [
        queues.name(lane)
        for broker in brokers
        if broker.kind == "rabbitmq"
        for lane in lanes
        if not _answers(broker, lane) and _deleted(broker, lane)
    ]


def _answers(broker: Broker, lane: str) -> bool:
    """True if the queue can be read, does not exist, or the server is unreachable."""
    try:
        with broker.connection() as connection:
            channel = connection.channel()
            connection.connection.transport.sock.settimeout(PATIENCE)
            channel.basic_get(queues.name(lane), no_ack=True)  # losing one wake-up does no harm
    except TimeoutError:
        return False
    except (AMQPError, OSError) as error:
        log.debug("queue %s: %s", queues.name(lane), error)
    return True


def _deleted(broker: Broker, lane: str) -> bool:
    log.warning("queue %s does not answer and is recreated; no work is lost", queues.name(lane))
    try:
        with broker.connection() as connection:
            channel = connection.channel()
            connection.connection.transport.sock.settimeout(PATIENCE)
            channel.queue_delete(queues.name(lane))
    except (AMQPError, OSError) as error:
        # The server takes a while to delete such a queue; its answer often comes too late.
        log.debug("queue %s: %s", queues.name(lane), error)
    return True


def hang_up(connection: object) -> None:
    """Break this connection for the thread that waits on it; to be called from another thread."""
    amqp = getattr(connection, "_connection", None)
    sock = getattr(getattr(amqp, "transport", None), "sock", None)
    if isinstance(sock, socket.socket):
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError as error:
            log.debug("hanging up: %s", error)
