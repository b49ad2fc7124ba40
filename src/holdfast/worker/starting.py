"""Before a worker begins: the database is there, the broker lets it in, and what is wrong is told in a line.

A server that is not up yet is waited for; a wrong password is not, for time does not mend it.
"""

import contextlib
import logging
import time

from kombu.exceptions import OperationalError

from holdfast import bootstrap
from holdfast.core.errors import BadRequestError, NotReadyError, StoreUnavailableError
from holdfast.core.retry import Backoff
from holdfast.settings import Settings
from holdfast.worker import sender
from holdfast.worker.brokers import Broker, broker

PATIENCE = 120.0
BACKOFF = Backoff(first=0.5, factor=1.5, most=5.0)
# Words by which servers and drivers say that waiting will not help.
_REFUSALS = (
    "password",
    "auth",
    "access_refused",
    "access refused",
    "noauth",
    "wrongpass",
    "role",
    "no pg_hba",
)

log = logging.getLogger(__name__)


def waited_for_database(settings: Settings, patience: float = PATIENCE) -> None:
    """The database answers and is at the revision this code needs.

    Raises SchemaError at once, StoreUnavailableError for a refusal at once and for silence after `patience`.
    """
    until, tries = time.monotonic() + patience, 0
    while True:
        try:
            bootstrap.open_runtime(settings, ()).close()
        except StoreUnavailableError as error:
            if _is_refusal(error.message) or time.monotonic() > until:
                raise
            tries += 1
            if tries == 1 or tries % 10 == 0:
                log.warning("%s; trying again", error.message)
            time.sleep(BACKOFF.delay(tries, 0.5))
        else:
            return


def consumed_brokers(settings: Settings) -> list[Broker]:
    """The brokers a worker may consume: its own, and those of the same nature that wake-ups also go to.

    An event loop serves either brokers that are polled or brokers that are not, so a worker does not change
    over from one nature to the other. Raises NotReadyError for a refusal; a broker that is down is no error.
    """
    tuning = sender.tuning(settings)
    own = broker(settings.broker_url.get_secret_value(), tuning)
    others = [each for each in sender.published(settings) if each.address != own.address]
    _try(own)
    return [own, *(each for each in others if each.polled == own.polled and not own.polled)]


def _try(own: Broker) -> None:
    try:
        own.prepare()
    except OSError as error:
        message = f"the folder of the broker {own} cannot be used ({error}); set DATA_DIR to one that can"
        raise NotReadyError(message, code="broker_folder") from error
    connection = own.connection()
    try:
        connection.ensure_connection(max_retries=1, interval_start=0, reraise_as_library_errors=False)
        connection.default_channel  # noqa: B018 - Redis connects and logs in only now
    except ImportError as error:
        message = (
            f"the broker {own} needs a driver that is not installed ({error}); pip install holdfast[redis]"
        )
        raise BadRequestError(message, code="driver_missing") from error
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        if _is_refusal(said):
            message = (
                f"the broker {own} refuses this worker ({said}); check user, password and path of BROKER_URL"
            )
            raise NotReadyError(message, code="broker_refused") from error
        log.warning("the broker %s does not answer yet (%s); work is accepted and waits for it", own, said)
    finally:
        with contextlib.suppress(OSError, OperationalError):
            connection.release()


def _is_refusal(said: str) -> bool:
    return any(word in said.lower() for word in _REFUSALS)
