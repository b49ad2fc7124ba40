"""One queue per lane, and one for messages that no worker could handle."""

from kombu import Connection, Exchange, Queue

from holdfast.core.states import LANE_RANK
from holdfast.worker.brokers import MOST_OUTSTANDING

EXCHANGE = Exchange("holdfast", type="direct", durable=True)
DEAD = Exchange("holdfast.dead", type="fanout", durable=True)
WAKE = "holdfast.wake"
DELIVER = "holdfast.deliver"
SET_ASIDE = (
    "rejected a message for %s: %s. No work is lost, because the database knows what is due; "
    "check for another app that uses the same broker"
)
MOST_DEAD = 1000
DEAD_FOR = 7 * 86_400 * 1000  # milliseconds
MOST_DELIVERIES = 20


def name(lane: str) -> str:
    """The queue of a lane."""
    return f"holdfast.{lane}"


def of_lane(lane: str) -> Queue:
    """The queue of a lane with its RabbitMQ arguments, which other brokers ignore.

    A full queue rejects further wake-ups, which are redundant. A message that kills its worker again and
    again becomes a dead letter instead of being redelivered for ever.
    """
    return Queue(
        name(lane),
        EXCHANGE,
        routing_key=lane,
        durable=True,
        queue_arguments={
            "x-queue-type": "quorum",
            "x-max-length": MOST_OUTSTANDING,
            "x-overflow": "reject-publish",
            "x-delivery-limit": MOST_DELIVERIES,
            "x-dead-letter-exchange": DEAD.name,
        },
    )


def dead_letters() -> Queue:
    """Where RabbitMQ keeps messages that no worker could handle, for a week, for inspection."""
    return Queue(
        "holdfast.dead",
        DEAD,
        durable=True,
        queue_arguments={
            "x-queue-type": "quorum",
            "x-max-length": MOST_DEAD,
            "x-message-ttl": DEAD_FOR,
        },
    )


def declare_dead_letters(connection: Connection) -> None:
    """Declare the exchange and queue for dead letters on RabbitMQ; other brokers need none.

    Without them it would silently drop rejected messages.
    """
    if connection.transport.driver_type != "amqp":
        return
    channel = connection.channel()  # its own: RabbitMQ closes the channel if it refuses
    try:
        dead_letters()(channel).declare()
    finally:
        channel.close()


def all_lanes() -> list[Queue]:
    """The queue of every lane."""
    return [of_lane(lane) for lane in LANE_RANK]
