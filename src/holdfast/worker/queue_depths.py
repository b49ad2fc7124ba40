"""How many wake-ups wait at each broker; one that does not answer is not waited for."""

import logging
from collections.abc import Iterator

from holdfast.core.states import LANE_RANK
from holdfast.settings import Settings
from holdfast.worker import queues, sender
from holdfast.worker.brokers import Broker

log = logging.getLogger(__name__)


def measure(settings: Settings) -> Iterator[tuple[str, str, int | None]]:
    """(broker, lane, messages) for every configured broker; None for one that does not answer."""
    for broker in sender.published(settings):
        depths = _of(broker)
        for lane in LANE_RANK:
            yield str(broker), lane, depths.get(lane) if depths is not None else None


def _of(broker: Broker) -> dict[str, int] | None:
    connection = broker.connection()
    depths = {}
    try:
        if broker.folder is None:
            connection.ensure_connection(max_retries=1, interval_start=0)
        for lane in LANE_RANK:
            depths[lane] = broker.outstanding(connection, queues.name(lane))
    except Exception as error:  # noqa: BLE001 - each driver has its own errors, and this is only a metric
        log.debug("broker %s: %s", broker, error)
        return None
    finally:
        connection.release()
    return depths
