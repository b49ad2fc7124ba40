"""What the main process of a worker sees of a guarded task: its process died, or it ran out of time."""

import logging
from typing import Any

from billiard.exceptions import WorkerLostError
from celery.worker.request import Request
from celery.worker.state import task_ready

from holdfast.core.errors import HoldfastError
from holdfast.guard import subjects

log = logging.getLogger(__name__)


class GuardedRequest(Request):  # type: ignore[misc]  # Celery has no types
    """Celery's view of one message, with a word to the database where Celery alone knows what happened."""

    def on_timeout(self, soft: bool, timeout: float) -> None:
        """At the hard time limit the run has failed, as Celery records the task."""
        if not soft:
            self._tell(lambda guard, run_id: guard.ran_out_of_time(run_id, timeout))
        super().on_timeout(soft, timeout)

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """When its process died, the run is due again before the message comes back."""
        error = getattr(exc_info.exception, "exc", exc_info.exception)
        if isinstance(error, WorkerLostError):
            self._tell(lambda guard, run_id: guard.process_died(run_id))
        return super().on_failure(exc_info, send_failed_event, return_ok)

    def _announce_revoked(self, reason: str, terminated: bool, signum: Any, expired: bool) -> None:
        """A spare copy of a message that has expired, or was revoked, says nothing about a run under way."""
        if not terminated and self._is_held():
            task_ready(self)
            self.acknowledge()
            self._already_revoked = True
            return
        super()._announce_revoked(reason, terminated, signum, expired)

    def _is_held(self) -> bool:
        try:
            return bool(self.task.holdfast_guard.is_held(subjects.run_id(self.id, self.task.name)))
        except HoldfastError:
            return False

    def _tell(self, report: Any) -> None:
        try:
            report(self.task.holdfast_guard, subjects.run_id(self.id, self.task.name))
        except HoldfastError as error:
            log.warning("holdfast: the end of %s[%s] was not recorded: %s", self.name, self.id, error.message)
