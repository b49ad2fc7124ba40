"""Checks before a worker starts: database and broker are reachable, or one line says what is wrong.

A server that is not up yet is waited for; a wrong password is not.
"""

import contextlib
import logging
import re
import time

from kombu.exceptions import OperationalError

from holdfast import bootstrap
from holdfast.core.errors import BadRequestError, NotReadyError, StoreUnavailableError, WorkError
from holdfast.core.retry import Backoff
from holdfast.kinds import recognition
from holdfast.settings import Settings
from holdfast.worker import sender
from holdfast.worker.brokers import Broker, broker, one_line

PATIENCE = 120.0
BACKOFF = Backoff(first=0.5, factor=1.5, most=5.0)
# Errors that waiting will not fix. Whole phrases, because a host may be called auth-db.
_REFUSALS = re.compile(
    r"authentication failed|AuthenticationError|\bNOAUTH\b|\bWRONGPASS\b|\bNOPERM\b|invalid username-password"
    r"|no password supplied|\bACCESS_REFUSED\b|\bNOT_ALLOWED\b|AccessRefused|NotAllowed"
    r'|role "[^"]*" (does not exist|is not permitted)|database "[^"]*" does not exist|no pg_hba\.conf entry'
    r"|server does not support SSL|certificate verify failed",
    re.IGNORECASE,
)
# A server without TLS on this port.
_NO_TLS = re.compile(r"WRONG_VERSION_NUMBER|record layer failure|packet length too long", re.IGNORECASE)

log = logging.getLogger(__name__)


def check_ocr(settings: Settings) -> None:
    """Raise BadRequestError `ocr_missing` if the settings require OCR and it cannot run here."""
    try:
        recognition.check(settings.ocr, settings.ocr_languages)
    except WorkError as error:
        raise BadRequestError(error.message, code=error.code) from error


def waited_for_database(settings: Settings, patience: float = PATIENCE) -> None:
    """The database answers and is at the revision this code needs.

    Raises SchemaError at once; StoreUnavailableError at once if refused, or after `patience` if unreachable.
    """
    until, attempts = time.monotonic() + patience, 0
    while True:
        try:
            settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with bootstrap.open_runtime(settings, ()) as runtime:
                bootstrap.check_blobs(runtime)
        except OSError as error:
            message = f"the data folder cannot be used ({error}); set HOLDFAST_DATA_DIR to a writable folder"
            raise NotReadyError(message, code="data_folder") from error
        except StoreUnavailableError as error:
            if _REFUSALS.search(error.message) or time.monotonic() > until:
                raise
            attempts += 1
            if attempts == 1 or attempts % 10 == 0:
                log.warning("%s; retrying", error.message)
            time.sleep(BACKOFF.delay(attempts, 0.5))
        else:
            return


def consumed_brokers(settings: Settings) -> list[Broker]:
    """The brokers a worker may consume from: its own, and compatible ones that wake-ups are also sent to.

    An event loop serves either polled brokers or others, and Celery has one TLS setting for all, so a worker
    does not fail over between these. Raises NotReadyError for a refusal; a broker that is down is no error.
    """
    tuning = sender.tuning(settings)
    own = broker(settings.broker_url.get_secret_value(), tuning)
    others = [each for each in sender.published(settings) if each.url != own.url]
    _try(own)
    return [own, *(each for each in others if not own.polled and not each.polled and each.tls == own.tls)]


def _try(own: Broker) -> None:
    try:
        own.prepare()
    except OSError as error:
        message = (
            f"the folder of the broker {own} cannot be used ({error}); "
            "set HOLDFAST_DATA_DIR to a writable folder"
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
    except Exception as error:  # each driver has its own errors, and all of them mean: not connected
        reason = one_line(error)
        if own.tls is not None and (problem := _tls_problem(own, reason)):
            raise NotReadyError(problem, code="broker_tls") from error
        if _REFUSALS.search(reason):
            message = (
                f"the broker {own} refuses this worker ({reason}); check user, password and path "
                "in HOLDFAST_BROKER_URL"
            )
            raise NotReadyError(message, code="broker_refused") from error
        hint = (
            "" if own.tls is None else "; if it does not speak TLS on this port, change HOLDFAST_BROKER_URL"
        )
        log.warning(
            "the broker %s does not answer yet (%s); requests are accepted and wait for it%s",
            own,
            reason,
            hint,
        )
    finally:
        with contextlib.suppress(OSError, OperationalError):
            connection.release()


def _tls_problem(own: Broker, reason: str) -> str | None:
    if _NO_TLS.search(reason):
        plain = "redis" if own.kind == "redis" else "amqp"
        return f"the broker {own} does not speak TLS on this port ({reason}); use {plain}:// or its TLS port"
    if "certificate" in reason.lower():
        return f"the certificate of the broker {own} is not trusted ({reason}); set HOLDFAST_BROKER_CA_FILE"
    return None
