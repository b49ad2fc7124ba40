"""Before a worker begins: the database is there, the broker lets it in, and what is wrong is told in a line.

A server that is not up yet is waited for; a wrong password is not, for time does not mend it.
"""

import contextlib
import logging
import re
import time

from kombu.exceptions import OperationalError

from holdfast import bootstrap
from holdfast.core.errors import BadRequestError, NotReadyError, StoreUnavailableError
from holdfast.core.retry import Backoff
from holdfast.settings import Settings
from holdfast.worker import sender
from holdfast.worker.brokers import Broker, broker, told

PATIENCE = 120.0
BACKOFF = Backoff(first=0.5, factor=1.5, most=5.0)
# What servers and drivers say when waiting will not help. Whole phrases: a host may be called auth-db.
_REFUSALS = re.compile(
    r"authentication failed|AuthenticationError|\bNOAUTH\b|\bWRONGPASS\b|\bNOPERM\b|invalid username-password"
    r"|no password supplied|\bACCESS_REFUSED\b|\bNOT_ALLOWED\b|AccessRefused|NotAllowed"
    r'|role "[^"]*" (does not exist|is not permitted)|database "[^"]*" does not exist|no pg_hba\.conf entry'
    r"|server does not support SSL|certificate verify failed",
    re.IGNORECASE,
)
# A server that answers in plain text to somebody who speaks TLS.
_NO_TLS = re.compile(r"WRONG_VERSION_NUMBER|record layer failure|packet length too long", re.IGNORECASE)

log = logging.getLogger(__name__)


def waited_for_database(settings: Settings, patience: float = PATIENCE) -> None:
    """The database answers and is at the revision this code needs.

    Raises SchemaError at once, StoreUnavailableError for a refusal at once and for silence after `patience`.
    """
    until, tries = time.monotonic() + patience, 0
    while True:
        try:
            settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with bootstrap.open_runtime(settings, ()) as runtime:
                bootstrap.check_blobs(runtime)
        except OSError as error:
            message = f"the data folder cannot be used ({error}); set HOLDFAST_DATA_DIR to one that can"
            raise NotReadyError(message, code="data_folder") from error
        except StoreUnavailableError as error:
            if _REFUSALS.search(error.message) or time.monotonic() > until:
                raise
            tries += 1
            if tries == 1 or tries % 10 == 0:
                log.warning("%s; trying again", error.message)
            time.sleep(BACKOFF.delay(tries, 0.5))
        else:
            return


def consumed_brokers(settings: Settings) -> list[Broker]:
    """The brokers a worker may consume: its own, and those of the same nature that wake-ups also go to.

    An event loop serves either brokers that are polled or brokers that are not, and Celery knows one setting
    of TLS for all, so a worker does not change over from one nature to the other. Raises NotReadyError for a
    refusal; a broker that is down is no error.
    """
    tuning = sender.tuning(settings)
    own = broker(settings.broker_url.get_secret_value(), tuning)
    others = [each for each in sender.published(settings) if each.address != own.address]
    _try(own)
    return [own, *(each for each in others if not own.polled and not each.polled and each.tls == own.tls)]


def _try(own: Broker) -> None:
    try:
        own.prepare()
    except OSError as error:
        message = (
            f"the folder of the broker {own} cannot be used ({error}); set HOLDFAST_DATA_DIR to one that can"
        )
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
        said = told(error)
        if own.tls is not None and (found := _tls_trouble(own, said)):
            raise NotReadyError(found, code="broker_tls") from error
        if _REFUSALS.search(said):
            message = (
                f"the broker {own} refuses this worker ({said}); check user, password and path "
                "of HOLDFAST_BROKER_URL"
            )
            raise NotReadyError(message, code="broker_refused") from error
        hint = (
            "" if own.tls is None else "; if it does not speak TLS on this port, change HOLDFAST_BROKER_URL"
        )
        log.warning(
            "the broker %s does not answer yet (%s); work is accepted and waits for it%s", own, said, hint
        )
    finally:
        with contextlib.suppress(OSError, OperationalError):
            connection.release()


def _tls_trouble(own: Broker, said: str) -> str | None:
    if _NO_TLS.search(said):
        plain = "redis" if own.sort == "redis" else "amqp"
        return f"the broker {own} does not speak TLS on this port ({said}); use {plain}:// or its TLS port"
    if "certificate" in said.lower():
        return f"the certificate of the broker {own} is not trusted ({said}); set HOLDFAST_BROKER_CA_FILE"
    return None
