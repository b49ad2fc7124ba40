"""`GuardedTask`: a Celery task whose calls are runs.

`apply_async` asks the database before it publishes: a call that is under way already is not published again,
and its caller gets the AsyncResult of the first. What a worker does with a delivery is in `deliveries`.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from celery import Task
from celery.utils import uuid
from kombu.exceptions import OperationalError

from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import RequestResult
from holdfast.guard import context, deliveries, outgoing, subjects
from holdfast.guard.outgoing import OutgoingCall
from holdfast.guard.requested import Requested
from holdfast.store.guarded.messages import TaskMessage, Timing

if TYPE_CHECKING:
    from holdfast.guard.guard import Guard

log = logging.getLogger(__name__)


class TaskRequest:
    """`task.request`: Celery's request of the execution under way, and, called, a request for a run.

    Everything that Celery's own request has is here as well.
    """

    __slots__ = ("_context", "_task")

    def __init__(self, task: "GuardedTask", celery_request: Any) -> None:
        object.__setattr__(self, "_task", task)
        object.__setattr__(self, "_context", celery_request)

    def __call__(self, *args: Any, using: Any = None, **kwargs: Any) -> Requested:
        """What became of a request to run the task with these arguments.

        With `using`, an SQLAlchemy session or connection, or Django's connection, the run exists if its
        transaction commits.
        """
        requested: Requested = self._task.request_async(args, kwargs, using=using)
        return requested

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._context, name, value)

    def __repr__(self) -> str:
        return repr(self._context)


class GuardedTask(Task):  # type: ignore[misc]  # Celery has no types
    """The base of guarded tasks; `guard.task` makes one of a function."""

    abstract = True
    # Without these Celery records a lost worker as a failure while the guard runs the task again.
    acks_late = True
    reject_on_worker_lost = True
    Request = "holdfast.guard.worker_requests:GuardedRequest"

    holdfast_guard: "ClassVar[Guard]"
    holdfast_key: ClassVar[subjects.KeyTemplate | None] = None
    holdfast_once: ClassVar[bool | float] = False

    @property
    def request(self) -> Any:
        """Celery's request of the execution under way; called, it requests a run of this task."""
        return TaskRequest(self, self._get_request())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """In a worker the delivery is handled; anywhere else the function is called, as Celery does."""
        request, execution = self._get_request(), context.execution()
        nested = execution is not None and execution.celery_id == request.id
        if request.called_directly or nested:
            return super().__call__(*args, **kwargs)
        return deliveries.handle(self, request, args, kwargs)

    def apply_async(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        task_id: str | None = None,
        producer: Any = None,
        link: Any = None,
        link_error: Any = None,
        shadow: str | None = None,
        **options: Any,
    ) -> Any:
        """As Celery documents it; the AsyncResult of a duplicate is that of the first."""
        named = {"link": link, "link_error": link_error, "shadow": shadow, "task_id": task_id}
        call = OutgoingCall(args, kwargs, options | named)
        if self._get_app().conf.task_always_eager:
            return self.publish(call, task_id or uuid(), producer=producer)
        execution = context.execution()
        if execution is not None and task_id == execution.celery_id and self.name == execution.name:
            # A retry, or the task replaced itself: the run goes on with this message. It is published once
            # that is recorded, so that a fenced execution publishes nothing.
            execution.next_message = self.message_of(call, task_id)
            execution.next_delay = call.delay
            return self.AsyncResult(task_id)
        return self._requested(call, producer=producer).result

    def request_async(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        *,
        using: Any = None,
        **options: Any,
    ) -> Requested:
        """What became of a request to run the task; the options are those of `apply_async`."""
        return self._requested(OutgoingCall(args, kwargs, options), using=using)

    def _requested(self, call: OutgoingCall, *, producer: Any = None, using: Any = None) -> Requested:
        if self.typing and (check := getattr(self, "__header__", None)) is not None:
            check(*call.args, **call.kwargs)
        celery_id = call.options.get("task_id") or uuid()
        message = self.message_of(call, celery_id)
        later = call.delay > outgoing.SOON
        timing = Timing(call.delay if later else 0.0, 0.0) if later or using is not None else Timing()
        answer = self.ask(call, message, timing, using=using)
        if answer.created:
            if not later and using is None:
                self._publish_new(call, celery_id, answer, producer)
            return Requested.of(answer, self.AsyncResult(celery_id))
        if call.in_canvas and answer.run_id is not None:
            # Others wait for a result under this id: its delivery answers with that of the run in its way.
            self._publish_waiting(call, celery_id, answer.run_id, producer)
            return Requested.of(answer, self.AsyncResult(celery_id))
        first = answer.run_id and self.holdfast_guard.celery_id_of(answer.run_id, using=using)
        return Requested.of(answer, self.AsyncResult(first or celery_id))

    def ask(
        self, call: OutgoingCall, message: TaskMessage, timing: Timing, *, using: Any = None
    ) -> RequestResult:
        """What became of a request for a run with this call."""
        return self.holdfast_guard.requested(self, call, message, timing, using=using)

    def _publish_new(self, call: OutgoingCall, celery_id: str, answer: RequestResult, producer: Any) -> None:
        headers = {outgoing.RUN_HEADER: answer.run_id}
        try:
            self.publish(call, celery_id, producer=producer, headers=headers)
        except (OperationalError, OSError) as error:
            # The run is accepted and stored: the sweep publishes it when the broker is back.
            log.warning("holdfast: %s was not published (%s); the sweep will publish it", self.name, error)
            try:
                self.holdfast_guard.publish_soon(str(answer.run_id))
            except StoreUnavailableError as away:
                log.warning("holdfast: that was not recorded; it is published within a minute: %s", away)

    def _publish_waiting(self, call: OutgoingCall, celery_id: str, run_id: str, producer: Any) -> None:
        """A message whose delivery answers with the result of a run that exists already.

        If the run has this very id, it goes on with the arguments that it was requested with.
        """
        header = outgoing.JOIN_HEADER
        if run_id == subjects.run_id(celery_id, self.name):
            header, call = outgoing.RUN_HEADER, self.holdfast_guard.stored_call(run_id) or call
        self.publish(call, celery_id, producer=producer, headers={header: run_id})

    def publish(
        self,
        call: OutgoingCall,
        celery_id: str,
        *,
        producer: Any = None,
        headers: Mapping[str, Any] | None = None,
        countdown: float | None = None,
    ) -> Any:
        """The message is sent, as Celery sends it."""
        options = {name: value for name, value in call.options.items() if value is not None}
        options["task_id"] = celery_id
        if headers:
            options["headers"] = {**(options.get("headers") or {}), **headers}
        if countdown is not None:
            options.pop("eta", None)
            options["countdown"] = countdown
        return super().apply_async(call.args, call.kwargs, producer=producer, **options)

    def message_of(self, call: OutgoingCall, celery_id: str) -> TaskMessage:
        """What is stored of a call."""
        once = self.holdfast_once is not False
        return call.message(celery_id, self.name, self.serializer_of(call), once=once)

    def serializer_of(self, call: OutgoingCall) -> str | None:
        """The serialisation of the call."""
        chosen: str | None = call.options.get("serializer") or self.serializer
        return chosen or str(self._get_app().conf.task_serializer)
