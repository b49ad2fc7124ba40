"""The part of the sweep that an application does: it publishes the messages of runs that are due."""

import logging
from collections.abc import Mapping
from functools import partial

from kombu.exceptions import KombuError, OperationalError

from holdfast.core import isolation
from holdfast.guard import outgoing
from holdfast.guard.outgoing import OutgoingCall
from holdfast.guard.task import GuardedTask
from holdfast.store.base.database import Database
from holdfast.store.guarded import messages
from holdfast.store.guarded.messages import DueMessage

# After this time a message that no worker could read fails its run.
UNREADABLE_AFTER = 86_400.0

log = logging.getLogger(__name__)


def publish_due(db: Database, tasks: Mapping[str, GuardedTask]) -> int:
    """The messages of these tasks that are due were published; how many. One bad message stops no other.

    A message that the broker does not take is tried again in the next rounds. SomeFailedError names those
    that could not be published for another reason: they are tried again when they are due again.
    """
    if not tasks or not messages.has_work(db):
        return 0
    names = sorted(tasks)
    due = [partial(_start, db, tasks, each) for each in messages.take_due(db, names)]
    due += [partial(_report, db, tasks, each) for each in messages.take_reports(db, names)]
    return isolation.for_each(due, lambda act: act(), name=lambda act: act.args[2].message.task_name)


def _start(db: Database, tasks: Mapping[str, GuardedTask], due: DueMessage) -> int:
    task = tasks[due.message.task_name]
    if due.expired:
        said = "no worker took it before it expired"
        messages.end(db, due.run_id, code="expired", message=said, cancelled=True, held_too=False)
        return 0
    try:
        call = outgoing.call_of(due.message)
    except (KombuError, LookupError, TypeError, ValueError) as error:
        if due.age < UNREADABLE_AFTER:
            raise  # another worker may be able to: one of a newer release, or with the serializer
        return _give_up(db, task, due, error, code="bad_message")
    try:
        return _publish(db, task, call, due)
    except TypeError as error:  # its arguments do not fit the task any more
        return _give_up(db, task, due, error, code="bad_arguments")


def _give_up(db: Database, task: GuardedTask, due: DueMessage, error: Exception, *, code: str) -> int:
    """The run has failed, and Celery is told: no delivery could tell it."""
    said = f"its message cannot be published any more: {type(error).__name__}: {error}"
    messages.end(db, due.run_id, code=code, message=said)
    task.backend.mark_as_failure(due.message.celery_id, error)
    log.warning("holdfast: run %s of %s has failed: %s", due.run_id, due.message.task_name, said)
    return 0


def _report(db: Database, tasks: Mapping[str, GuardedTask], due: DueMessage) -> int:
    call = outgoing.call_of(due.message)
    # It may have expired, and RabbitMQ would drop it; here it only tells how the run has ended.
    call.options.pop("expires", None)
    return _publish(db, tasks[due.message.task_name], call, due, ended=True)


def _publish(
    db: Database, task: GuardedTask, call: OutgoingCall, due: DueMessage, *, ended: bool = False
) -> int:
    try:
        task.publish(call, due.message.celery_id, headers={outgoing.RUN_HEADER: due.run_id})
    except (OperationalError, OSError) as error:
        log.warning("holdfast: %s was not published, trying again: %s", due.message.task_name, error)
        (messages.report if ended else messages.publish_soon)(db, due.run_id)
        return 0
    return 1
