"""The part of the sweep that an application does: it publishes the messages of runs that are due."""

import logging
from collections.abc import Mapping

from kombu.exceptions import OperationalError

from holdfast.guard import outgoing
from holdfast.guard.task import GuardedTask
from holdfast.store.base.database import Database
from holdfast.store.guarded import messages
from holdfast.store.guarded.messages import DueMessage

log = logging.getLogger(__name__)


def publish_due(db: Database, tasks: Mapping[str, GuardedTask]) -> int:
    """The messages of these tasks that are due were published; how many.

    A message that the broker does not take is tried again in the next rounds.
    """
    if not tasks or not messages.has_work(db):
        return 0
    names, published = sorted(tasks), 0
    for due in messages.take_due(db, names):
        if due.expired:
            messages.end(
                db, due.run_id, code="expired", message="no worker took it before it expired", cancelled=True
            )
        elif _publish(tasks[due.message.task_name], due):
            published += 1
        else:
            messages.publish_soon(db, due.run_id)
    for due in messages.take_reports(db, names):
        if _publish(tasks[due.message.task_name], due):
            published += 1
        else:
            messages.report(db, due.run_id)
    return published


def _publish(task: GuardedTask, due: DueMessage) -> bool:
    headers = {outgoing.RUN_HEADER: due.run_id}
    try:
        task.publish(outgoing.call_of(due.message), due.message.celery_id, headers=headers)
    except (OperationalError, OSError) as error:
        log.warning("holdfast: %s was not published, trying again: %s", due.message.task_name, error)
        return False
    return True
