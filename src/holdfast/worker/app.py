"""The Celery app: late acknowledgement, JSON only, no results, and two tasks that call the engine."""

from collections.abc import Sequence
from typing import Any

from celery import Celery

from holdfast.worker import brokers, child, queues
from holdfast.worker.brokers import Broker


def build(consumed: Sequence[Broker], *, events: bool = False) -> Celery:
    """The app of a worker that consumes from the first of these brokers that answers."""
    app = Celery("holdfast", set_as_current=False)
    app.consumed = tuple(consumed)
    app.conf.update(conf(consumed, events=events))

    # By default Celery makes a task one of every application in the process.
    @app.task(name=queues.WAKE, bind=True, shared=False)
    def wake(self: Any, *args: object, **_: object) -> None:
        lane = child.current().lane(args)
        child.current().wake(lane, redelivered=child.redelivered(self.request))

    @app.task(name=queues.DELIVER, bind=True, shared=False)
    def deliver(self: Any, *args: object, **_: object) -> None:
        task_id = child.current().task_id(args)
        child.current().deliver(task_id, redelivered=child.redelivered(self.request))

    return app


def conf(consumed: Sequence[Broker], *, events: bool = False) -> dict[str, Any]:
    """Celery's settings. Each one that differs from Celery's default prevents a known failure."""
    options: dict[str, Any] = {}
    for each in consumed:
        options |= each.consuming
    return {
        "broker_url": [each.url for each in consumed],
        "broker_transport_options": options,
        "broker_use_ssl": dict(consumed[0].tls) if consumed[0].tls is not None else None,
        "broker_connection_timeout": brokers.CONNECT_TIMEOUT,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_heartbeat": brokers.HEARTBEAT,
        "broker_channel_error_retry": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_acks_on_failure_or_timeout": True,
        "worker_prefetch_multiplier": 1,
        # A lost broker connection must not stop paid work: the lease is in the database, not in the message.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_enable_prefetch_count_reduction": False,
        "accept_content": ["json"],
        "task_serializer": "json",
        "result_backend": None,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_create_missing_queues": False,
        "task_queues": queues.all_lanes(),
        "task_default_queue": queues.name("bulk"),
        "worker_detect_quorum_queues": any(each.kind == "rabbitmq" for each in consumed),
        "worker_send_task_events": events,
        "task_send_sent_event": events,
        "worker_enable_remote_control": events,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_consumer": "holdfast.worker.consumer:Consumer",
        "worker_lost_wait": 1.0,
    }
