"""How many wake-ups wait at each broker, asked in passing: one that does not answer is not waited for."""

import logging
from collections.abc import Iterator

from holdfast.core.states import LANE_RANK
from holdfast.settings import Settings
from holdfast.worker import queues, sender
from holdfast.worker.brokers import Broker

log = logging.getLogger(__name__)


def measure(settings: Settings) -> Iterator[tuple[str, str, int | None]]:
    """(broker, lane, messages) for every broker of the settings; None for one that does not answer."""
    for broker in sender.published(settings):
        found = _of(broker)
        for lane in LANE_RANK:
            yield str(broker), lane, found.get(lane) if found is not None else None


def _of(broker: Broker) -> dict[str, int] | None:
    connection = broker.connection()
    found = {}
    try:
        if broker.folder is None:
            connection.ensure_connection(max_retries=1, interval_start=0)
        for lane in LANE_RANK:
            found[lane] = broker.outstanding(connection, queues.name(lane))
    except Exception as error:  # noqa: BLE001 - every driver has errors of its own, and this is only a look
        log.debug("broker %s: %s", broker, error)
        return None
    finally:
        connection.release()
    return found
