"""How the processes of Holdfast write their log: lines for people, or one JSON object to a line."""

import json
import logging
import sys
from datetime import UTC, datetime

from holdfast.cli import terminal
from holdfast.core.records import Claim
from holdfast.settings import Settings
from holdfast.telemetry import context

# Libraries whose news is told by our own lines, or is none.
_QUIET = (
    "alembic",
    "amqp",
    "billiard",
    "celery.app.trace",
    "celery.apps.worker",
    "celery.worker.consumer.connection",
    "celery.worker.consumer.consumer",
    "celery.worker.consumer.tasks",
    "celery.worker.strategy",
    "httpcore",
    "kombu",
    "py.warnings",
)


def set_up(settings: Settings) -> None:
    """Everything from `log_level` on goes to standard error, in the format of the settings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if settings.log_format == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    # The pool's own logger tells nobody above it, and without a handler it writes bare lines.
    pool = logging.getLogger("multiprocessing")
    pool.handlers[:] = [handler]
    if settings.log_level != "debug":
        pool.setLevel(logging.WARNING)
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.ERROR)
        # That a process died is told in one line; Celery adds a dozen, as if its own code had failed.
        logging.getLogger("celery.worker.request").setLevel(logging.CRITICAL)


class _Text(logging.Formatter):
    """`12:00:01 warning message`; the date is left to the log collector."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        text = f"{at} [{record.process}] {level}{record.getMessage()}"
        # Names and messages of others are in it, and somebody may be looking.
        text = terminal.harmless(text)
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Json(logging.Formatter):
    """One object to a line, with the time in UTC; a line about a task names its run, generation and epoch.

    That is the task that the thread is working on, or the one given with the line as `work`.
    """

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        work: Claim | None = getattr(record, "work", None) or context.current()
        if work is not None:
            fields |= context.fields(work)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)
