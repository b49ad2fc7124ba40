"""What a worker does with a delivery of a guarded task.

It claims the run of the message, or adopts a message that nobody has requested (of beat, `send_task`, or from
before the guard). A claim that is refused says why, and the delivery ends accordingly: it is ignored while
another execution is under way, answered with the stored result when the run is done, revoked when it was
cancelled or superseded. An execution ends in the database first; only then does Celery hear of it.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from celery import states
from celery.exceptions import Ignore, Reject, Retry
from kombu.exceptions import OperationalError

from holdfast.core.errors import HoldfastError, SchemaError, StoreUnavailableError
from holdfast.core.records import Claim, RequestResult, Skipped
from holdfast.core.states import LIVE, Disposition, Skip, Status
from holdfast.engine.events import Done, Ending
from holdfast.engine.execute import Taker
from holdfast.guard import context, outgoing, serialization, subjects
from holdfast.guard.execution import Execution
from holdfast.guard.outgoing import OutgoingCall
from holdfast.guard.signals import Duplicate, EarlierFailure
from holdfast.store.guarded import messages
from holdfast.store.guarded.messages import AdoptingHolder, RunEnd
from holdfast.store.protocol.claims import LockHeld

if TYPE_CHECKING:
    from holdfast.guard.runtime import GuardRuntime
    from holdfast.guard.task import GuardedTask

# Seconds until a delivery is tried again that waits for another run, or for the database.
JOIN_FIRST, JOIN_MOST = 1.0, 30.0
STORE_AWAY = 10.0
# Ends of which Celery's word is a revocation.
REVOKED = frozenset({Status.CANCELLED, Status.SUPERSEDED})
_OVER = frozenset({"run_superseded", "run_cancelled", "stale_generation"})

log = logging.getLogger(__name__)


def handle(task: "GuardedTask", request: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of the task, or one of Celery's ways to end a delivery without one."""
    delivery = TaskDelivery(task, request, args, kwargs)
    try:
        return delivery.handle()
    except (StoreUnavailableError, SchemaError) as error:
        return delivery.come_again(STORE_AWAY, error.message)


class TaskDelivery:
    """One message in the hands of a worker."""

    def __init__(
        self, task: "GuardedTask", request: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        self._task = task
        self._request = request
        self._args = args
        self._kwargs = kwargs
        self._run_id = subjects.run_id(request.id, task.name)
        for name in ("callbacks", "errbacks"):
            if getattr(request, name, None):
                setattr(request, name, outgoing.callbacks_of(request.id, name, getattr(request, name)))
        self._execution = Execution(
            task.name, request, task.run, args, kwargs, task.app.conf.result_serializer
        )

    @property
    def _runtime(self) -> "GuardRuntime":
        return self._task.holdfast_guard.working_runtime(self._task)

    def handle(self) -> Any:
        """Claim and run it, or end the delivery."""
        joined = self._header(outgoing.JOIN_HEADER)
        if joined is not None:
            return self._join(joined)
        engine, rules = self._runtime.engine, self._runtime.options.rules
        held = LockHeld(attempt_cap=rules.attempt_cap, loss_cap=rules.loss_cap, times=0)
        with context.delivering(self._execution):
            ended = engine.executor.run_named(self._run_id, held)
            if isinstance(ended, Skipped) and ended.reason is Skip.UNKNOWN:
                if self._header(outgoing.RUN_HEADER) is not None:
                    # Its transaction was rolled back, or its history was pruned long after it ended.
                    raise Ignore("holdfast: there is no such run")
                adopted = engine.executor.run_taken(self._adopt)
                if isinstance(adopted, RequestResult):
                    return self._not_adopted(adopted)
                ended = adopted
        return self._skipped(ended.reason) if isinstance(ended, Skipped) else self._ended(ended)

    def _header(self, name: str) -> str | None:
        value = (self._request.headers or {}).get(name) or self._request.get(name)
        return value if isinstance(value, str) else None

    def _adopt(self, taker: Taker) -> Claim | RequestResult:
        guard = self._task.holdfast_guard
        call = self._call()
        message = self._task.message_of(call, self._request.id)
        return messages.adopt(
            self._runtime.db,
            guard.ask_of(self._task, call),
            message,
            AdoptingHolder(taker.owner, taker.token, taker.ttl, taker.carrier),
            run_id=self._run_id,
            patience=guard.silence,
        )

    def _call(self) -> OutgoingCall:
        """The call as it came, with all that Celery needs to send it again."""
        signature = self._task.signature_from_request(self._request, self._args, self._kwargs)
        return OutgoingCall(self._args, self._kwargs, dict(signature.options))

    def _not_adopted(self, answer: RequestResult) -> Any:
        if answer.disposition is Disposition.REFUSED or answer.run_id is None:
            raise Reject(f"holdfast: the run was refused: {answer.reason}", requeue=False)
        log.info("holdfast: %s[%s] is a duplicate (%s)", self._task.name, self._request.id, answer.reason)
        if answer.run_id == self._run_id:
            raise Ignore("holdfast: another delivery of this message is under way")
        return self._join(answer.run_id)

    def _join(self, run_id: str) -> Any:
        """The result of another run with the same work, once it has one."""
        end = messages.end_of(self._runtime.db, run_id)
        if end is None:
            raise Duplicate("the run that does the same work is not known any more", run_id=run_id)
        if end.status in LIVE:
            tries = min(8, int(self._header("holdfast_tries") or 0))
            return self.come_again(min(JOIN_MOST, JOIN_FIRST * 2**tries), "", run_id=run_id, tries=tries + 1)
        return self._as_it_ended(end)

    def _skipped(self, reason: Skip) -> Any:
        log.info("holdfast: %s[%s] is skipped: %s", self._task.name, self._request.id, reason)
        match reason:
            case Skip.FINISHED | Skip.CANCELLED | Skip.STALE_GENERATION:
                end = messages.end_of(self._runtime.db, self._run_id)
                if end is None or end.status in LIVE:
                    raise Ignore(f"holdfast: {reason}")
                is_reported = self._is_reported()
                messages.reported(self._runtime.db, self._run_id)
                if is_reported:
                    self._count_in_chord(end)
                    raise Ignore(f"holdfast: {reason}")
                return self._as_it_ended(end)
        # Another execution is under way, or the run is to be ended: the sweep sees to both.
        raise Ignore(f"holdfast: {reason}")

    def _count_in_chord(self, end: RunEnd) -> None:
        """The member of a chord is counted: a worker may have died after it stored the result, before that.

        Redis counts a member once, however often it is told. Other backends do not: there the chord waits.
        """
        from celery.backends.redis import RedisBackend  # noqa: PLC0415 - needs the client of Redis

        backend, is_done = self._task.backend, end.status is Status.SUCCESS
        if is_done and self._request.chord and isinstance(backend, RedisBackend):
            backend.on_chord_part_return(self._request, states.SUCCESS, serialization.value_of(end.result))

    def _is_reported(self) -> bool:
        """True if Celery's result backend has the end of this message, which comes after its callbacks."""
        if self._request.is_eager:
            return False  # nothing is stored, and Celery warns who asks
        try:
            return self._task.AsyncResult(self._request.id).state in states.READY_STATES
        except Exception:  # noqa: BLE001 - without a backend, or out of its reach, nobody knows: tell it again
            return False

    def _as_it_ended(self, end: RunEnd) -> Any:
        if end.status is Status.SUCCESS:
            return serialization.value_of(end.result)
        if end.status in REVOKED:
            return self._revoked(end.error_message or end.status.value)
        raise EarlierFailure(f"{end.error_message} [{end.error_code}]")

    def _revoked(self, reason: str) -> Any:
        self._task.backend.mark_as_revoked(
            self._request.id, reason, request=self._request, store_result=not self._task.ignore_result
        )
        raise Ignore(f"holdfast: {reason}")

    def _ended(self, done: Done) -> Any:
        """The delivery ends as the execution did."""
        error = self._execution.error
        match done.ending:
            case Ending.PUBLISHED | Ending.FINISHED:
                if self._execution.has_finished and not messages.reported(self._runtime.db, self._run_id):
                    raise Ignore("holdfast: the sweep had the end of the run reported meanwhile")
                if error is not None:
                    raise error
                return self._execution.value
            case Ending.FAILED:
                raise error if error is not None else EarlierFailure(done.reason)
            case Ending.PUT_BACK if error is not None:
                self._publish_next()
                raise error
            case Ending.FENCED_OUT if done.reason in _OVER or _OVER & set(done.reason.split(": ")):
                return self._revoked(done.reason)
        # Put back, released or taken over: the sweep publishes the message when the run may go on.
        raise Ignore(f"holdfast: {done.ending}: {done.reason}")

    def _publish_next(self) -> None:
        """The message with which the run goes on is published, unless the sweep does so when it is due."""
        following, delay = self._execution.next_message, self._execution.next_delay
        if (
            following is None
            or delay > outgoing.SOON
            or not isinstance(self._execution.error, Retry | Ignore)
        ):
            return
        try:
            self._task.publish(
                outgoing.call_of(following),
                self._request.id,
                headers={outgoing.RUN_HEADER: self._run_id},
                countdown=delay + outgoing.CLOCK_SLACK if delay else None,
            )
        except (OperationalError, OSError) as error:
            log.warning("holdfast: a retry of %s is left to the sweep: %s", self._task.name, error)

    def come_again(self, delay: float, reason: str, *, run_id: str | None = None, tries: int = 0) -> Any:
        """The same message is delivered again after a while; this delivery ends without a result."""
        if self._request.is_eager:
            raise HoldfastError(reason or "the same work is under way already", code="must_wait")
        headers = {} if run_id is None else {outgoing.JOIN_HEADER: run_id, "holdfast_tries": str(tries)}
        if reason:
            log.warning(
                "holdfast: %s[%s] is tried again in %g s: %s",
                self._task.name,
                self._request.id,
                delay,
                reason,
            )
        try:
            self._task.publish(self._call(), self._request.id, headers=headers, countdown=delay)
        except (OperationalError, OSError) as error:
            raise Reject(
                f"holdfast: neither the database nor the broker answers: {error}", requeue=True
            ) from error
        raise Ignore("holdfast: tried again later")
