"""One execution of a guarded task: what it was called with, and how it ended."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from celery.exceptions import Ignore, Reject, Retry
from kombu.exceptions import KombuError

from holdfast.core.errors import FencedOutError, HoldfastError, MustWaitError, WorkError
from holdfast.core.records import Fenced
from holdfast.core.states import Status
from holdfast.core.text import plain
from holdfast.engine.work import Work
from holdfast.guard import context, outgoing, serialization
from holdfast.guard.signals import FencedOut, MustWait
from holdfast.store.guarded import messages
from holdfast.store.guarded.messages import TaskMessage

NEVER = 10.0 * 365 * 86_400

log = logging.getLogger(__name__)


class Execution:
    """A delivery that may become the execution of a task, in this thread."""

    def __init__(
        self,
        name: str,
        request: Any,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result_serializer: str | None,
    ) -> None:
        self.name = name
        self.celery_id = str(request.id)
        self._request = request
        self._function = function
        self._args = args
        self._kwargs = kwargs
        self._serializer = result_serializer
        self.work: Work | None = None
        self.value: Any = None
        # What the body raised, to be raised again once the end of the run is recorded.
        self.error: BaseException | None = None
        # The message with which the run goes on, after a retry or when the task replaced itself.
        self.next_message: TaskMessage | None = None
        self.next_delay = 0.0
        self.starts = 0
        # The result with which the body ends its run in its own transaction, and whether it has.
        self._finishing: tuple[Any] | None = None
        self.has_finished = False

    def run(self, work: Work) -> Mapping[str, Any] | None:
        """The body of the task has run; its result as it is stored. Errors are those of the engine."""
        self.work = work
        self.starts += 1
        if work.claim.epoch > 1 and not self._request.is_eager:
            self._read_message(work)
        try:
            result = self._call(work)
        except HoldfastError as error:
            if not self._has_finished(work):
                raise
            log.warning("holdfast: %s[%s] raised after guard.finish: %s", self.name, self.celery_id, error)
            return None
        return None if self._has_finished(work) else result

    def finishing(self, result: Any) -> dict[str, Any]:
        """The body is about to end the run in its own transaction; its result as it is stored."""
        self._finishing = (result,)
        if self.work is not None:
            self.work.is_ending = True
        return serialization.result(result, self._serializer)

    def _has_finished(self, work: Work) -> bool:
        """True if the body has ended the run in its own transaction, and that has committed."""
        if self._finishing is None:
            return False
        end = messages.end_of(work.db, work.claim.run_id)
        self.has_finished = end is not None and end.status is Status.SUCCESS
        if self.has_finished:
            work.has_ended = True
            (self.value,), self.error, self.next_message = self._finishing, None, None
        return self.has_finished

    def _call(self, work: Work) -> Mapping[str, Any] | None:
        try:
            with context.executing(self):
                self.value = self._function(*self._args, **self._kwargs)
        except FencedOut as signal:
            raise FencedOutError(signal.reason) from signal
        except MustWait as signal:
            raise MustWaitError(str(signal), reason=signal.reason, delay=signal.delay) from signal
        except (Retry, Ignore, Reject) as error:
            return self._stopped(work, error)
        except Exception as error:  # whatever the body raises is the end of its run, and passed on to Celery
            if self.next_message is not None:
                return self._stopped(work, Retry("the task asked for a retry", error))
            self.error = error
            text = f"{type(error).__name__}: {error}"
            raise WorkError(plain(text), code="task_raised") from error
        if self.next_message is not None:  # by `retry(throw=False)`, or the body has swallowed its Retry
            return self._stopped(work, Retry("the task asked for a retry"))
        return serialization.result(self.value, self._serializer)

    def _read_message(self, work: Work) -> None:
        """The stored message counts: the one in hand may be older than a retry with other arguments."""
        stored = messages.of_run(work.db, work.claim.run_id)
        if stored is None:
            return
        try:
            call = outgoing.call_of(stored)
        except (KombuError, LookupError, TypeError, ValueError):
            return  # written by another release; the message in hand could be read
        self._args, self._kwargs = call.args, call.kwargs
        retries = call.options.get("retries") or 0
        self._request.update(args=call.args, kwargs=call.kwargs, retries=retries)

    def _stopped(self, work: Work, error: Exception) -> Mapping[str, Any] | None:
        """The body has ended itself in one of Celery's ways."""
        self.error = error
        if self.next_message is not None:
            outcome = messages.replace(work.db, work.claim, self.next_message)
            if isinstance(outcome, Fenced):
                raise FencedOutError(outcome.reason) from error
        if self.next_message is not None or isinstance(error, Retry):
            # In eager mode Celery itself calls the task again, at once.
            raise MustWaitError("the task is retried", reason="retry", delay=self.next_delay) from error
        if isinstance(error, Reject) and error.requeue:
            raise MustWaitError("the task rejected its message", reason="requeue", delay=0.0) from error
        if isinstance(error, Reject):
            raise WorkError(plain(f"the task rejected its message: {error}"), code="rejected") from error
        return None
