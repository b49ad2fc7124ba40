"""The settings in effect of a Celery application, and the effective options of its tasks."""

import contextlib
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from celery import Celery
from celery.app.utils import find_app

from holdfast.core.errors import BadRequestError
from holdfast.doctor import redaction
from holdfast.doctor.facts import AppFacts, Endpoint, QueueFacts, TaskFacts

LOCKS = {
    ("celery_once", "QueueOnce"): "celery-once",
    ("celery_singleton", "Singleton"): "celery-singleton",
    ("celery_heimdall", "HeimdallTask"): "celery-heimdall",
}
GUARDED = ("holdfast", "GuardedTask")
# How kombu looks at unacknowledged messages by default: every tenth time of every ten seconds.
RESTORE_INTERVAL, RESTORE_THROTTLE = 10.0, 10


def load(name: str) -> Celery:
    """The application that `celery -A NAME` would use, with its tasks.

    Its code is imported, as by a worker. What that prints goes to standard error: standard output is the
    report. Raises BadRequestError, without secrets of the traceback.
    """
    if os.getcwd() not in sys.path:  # noqa: PTH109 - the entry of sys.path is a string
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as for celery -A
    try:
        with contextlib.redirect_stdout(sys.stderr):
            app: Any = find_app(name)
            if isinstance(app, Celery):
                app.loader.import_default_modules()
                app.finalize()
    except Exception as error:  # noqa: BLE001 - the user's own code is imported, and may raise anything
        reason = redaction.text(f"{type(error).__name__}: {error}")
        message = f"the application {name!r} could not be loaded ({reason}); use module:app, as for celery -A"
        raise BadRequestError(message, code="bad_app") from None
    if not isinstance(app, Celery):
        message = f"{name!r} is a {type(app).__name__}, not a Celery application; use module:app"
        raise BadRequestError(message, code="bad_app")
    return app


def broker_url(app: Celery) -> str:
    """The URL that workers of the application read from, with its password."""
    return _first(app.conf.broker_read_url) or "amqp://guest:guest@localhost:5672//"


def facts_of(app: Celery, name: str, *, ours: bool = False) -> AppFacts:
    """What the checks need to know of an application."""
    conf = app.conf
    options = _transport_options(broker_url(app), conf.broker_transport_options)
    results: Mapping[str, Any] = conf.result_backend_transport_options or {}
    defaults = _task_defaults(conf)
    tasks = [each for key, each in sorted(app.tasks.items()) if not key.startswith("celery.")]
    interval = _seconds(options.get("unacked_restore_interval")) or RESTORE_INTERVAL
    return AppFacts(
        name=name,
        ours=ours,
        broker=redaction.endpoint(broker_url(app)),
        result_backend=_backend(conf.result_backend),
        tasks=tuple(_task(each, conf, guarded=ours) for each in tasks),
        queues=_queues(app),
        defaults=defaults,
        prefetch_multiplier=int(conf.worker_prefetch_multiplier),
        concurrency=conf.worker_concurrency if isinstance(conf.worker_concurrency, int) else None,
        cancels_on_connection_loss=bool(conf.worker_cancel_long_running_tasks_on_connection_loss),
        soft_shutdown_timeout=_seconds(conf.get("worker_soft_shutdown_timeout")) or 0.0,
        deduplicates_successful=bool(conf.worker_deduplicate_successful_tasks),
        result_expires=_seconds(conf.result_expires),
        connection_max_retries=conf.broker_connection_max_retries or None,
        pool=_pool(conf.worker_pool),
        beat_entries=len(conf.beat_schedule or {}),
        beat_scheduler=str(conf.beat_scheduler or ""),
        visibility_timeout=_seconds(options.get("visibility_timeout")),
        result_visibility_timeout=_seconds(results.get("visibility_timeout")),
        socket_timeout=_seconds(options.get("socket_timeout")),
        socket_keepalive=bool(options.get("socket_keepalive")),
        health_check_interval=_seconds(options.get("health_check_interval")),
        restore_seconds=interval * int(options.get("unacked_restore_throttle") or RESTORE_THROTTLE),
        confirms_publish=bool(options.get("confirm_publish")),
        delivery_mode=1 if str(conf.task_default_delivery_mode) in {"1", "transient"} else 2,
        heartbeat=_seconds(conf.broker_heartbeat),
        detects_quorum_queues=bool(conf.get("worker_detect_quorum_queues", False)),
        lock_server=_lock_server(conf, tasks),
    )


def _transport_options(url: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of the transport; kombu also takes them from the query of the URL."""
    with contextlib.suppress(ValueError):
        return {**dict(parse_qsl(urlsplit(url).query)), **(options or {})}
    return dict(options or {})


def _task_defaults(conf: Any) -> TaskFacts:
    both = conf.get("task_acks_on_failure_or_timeout", True)
    on_timeout = conf.get("task_acks_on_timeout")
    return TaskFacts(
        "any task",
        acks_late=bool(conf.task_acks_late),
        reject_on_worker_lost=bool(conf.task_reject_on_worker_lost),
        retry_on_worker_lost=bool(conf.get("task_retry_on_worker_lost", False)),
        acks_on_timeout=bool(both if on_timeout is None else on_timeout),
        ignore_result=bool(conf.task_ignore_result),
        time_limit=_seconds(conf.task_time_limit),
        soft_time_limit=_seconds(conf.task_soft_time_limit),
    )


def _task(task: Any, conf: Any, *, guarded: bool) -> TaskFacts:
    defaults = _task_defaults(conf)
    both = getattr(task, "acks_on_failure_or_timeout", None)
    on_timeout = getattr(task, "acks_on_timeout", None)
    lock = _lock(type(task))
    return TaskFacts(
        task.name,
        guarded=guarded or _has_base(type(task), GUARDED),
        acks_late=bool(task.acks_late),
        reject_on_worker_lost=bool(task.reject_on_worker_lost),
        retry_on_worker_lost=bool(getattr(task, "retry_on_worker_lost", False)),
        acks_on_timeout=next((bool(each) for each in (on_timeout, both) if each is not None), True),
        ignore_result=bool(task.ignore_result),
        time_limit=_seconds(task.time_limit) or defaults.time_limit,
        soft_time_limit=_seconds(task.soft_time_limit) or defaults.soft_time_limit,
        retry_delay=_retry_delay(task),
        lock=lock,
        lock_expiry=_lock_expiry(task, conf, lock),
    )


def _retry_delay(task: Any) -> float | None:
    """The longest delay of retries that the task makes by itself; what `self.retry` says is not known."""
    if not getattr(task, "autoretry_for", ()):
        return None
    if getattr(task, "retry_backoff", False):
        return _seconds(getattr(task, "retry_backoff_max", 600))
    return _seconds(task.default_retry_delay)


def _has_base(kind: type, base: tuple[str, str]) -> bool:
    package, name = base
    return any(
        each.__name__ == name and each.__module__.partition(".")[0] == package for each in kind.__mro__
    )


def _lock(kind: type) -> str | None:
    return next((library for base, library in LOCKS.items() if _has_base(kind, base)), None)


def _lock_expiry(task: Any, conf: Any, lock: str | None) -> float | None:
    match lock:
        case "celery-once":
            settings = (conf.get("ONCE") or {}).get("settings") or {}
            return _seconds(task.once.get("timeout") or settings.get("default_timeout") or 3600)
        case "celery-singleton":
            own = getattr(task, "lock_expiry", None)
            return _seconds(conf.get("singleton_lock_expiry") if own is None else own)
        case "celery-heimdall":
            own = (getattr(task, "heimdall", None) or {}).get("unique_timeout")
            return _seconds(own or conf.get("heimdall_unique_timeout") or 3600)
        case _:
            return None


def lock_url(conf: Any, tasks: Iterable[Any]) -> str | None:
    """The URL of the server with the locks of tasks; None if no task has one."""
    locks = {_lock(type(task)) for task in tasks} - {None}
    if not locks:
        return None
    if "celery-once" in locks:
        url = ((conf.get("ONCE") or {}).get("settings") or {}).get("url")
        if url:
            return str(url)
    backend = str(conf.get("singleton_backend_url") or conf.result_backend or "")
    return backend if backend.startswith("redis") else _first(conf.broker_url)


def _lock_server(conf: Any, tasks: Iterable[Any]) -> Endpoint | None:
    url = lock_url(conf, tasks)
    return None if url is None else redaction.endpoint(url)


def _queues(app: Celery) -> tuple[QueueFacts, ...]:
    return tuple(
        QueueFacts(
            queue.name,
            type=str((queue.queue_arguments or {}).get("x-queue-type", "classic")),
            durable=bool(queue.durable),
            auto_delete=bool(queue.auto_delete),
            exclusive=bool(queue.exclusive),
            arguments=dict(queue.queue_arguments or {}),
        )
        for queue in app.amqp.queues.values()
    )


def _backend(url: Any) -> Endpoint | None:
    text = _first(url)
    if not text or text == "disabled://":
        return None
    return redaction.endpoint(text if "://" in text else f"{text}://")


def _first(url: Any) -> str:
    """The first URL of a setting that may be a list, or several with semicolons."""
    if isinstance(url, list | tuple):
        url = url[0] if url else ""
    return str(url or "").split(";")[0]


def _pool(value: Any) -> str:
    name = str(value or "prefork")
    for pool in ("prefork", "gevent", "eventlet", "solo", "threads"):
        if pool in name or (pool == "threads" and "thread" in name):
            return pool
    return "prefork" if name == "processes" else name


def _seconds(value: Any) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None
