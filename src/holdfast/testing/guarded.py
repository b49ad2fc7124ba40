"""`GuardTester`: guarded tasks in a test, in this process and under the full protocol, without a broker."""

import functools
import os
import secrets
import signal
import threading
from collections.abc import Callable
from typing import Any

from holdfast import faults
from holdfast.core.states import Loss, Status
from holdfast.guard import outgoing, serialization, subjects
from holdfast.guard.guard import Guard
from holdfast.guard.publishing import publish_due
from holdfast.guard.requested import Requested
from holdfast.guard.task import GuardedTask
from holdfast.store.guarded import messages
from holdfast.store.protocol import losses

_SECONDS = 30.0
_CHANGED = ("task_always_eager", "task_eager_propagates")


class GuardTester:
    """Runs the tasks of a guard in this process, as soon as they are called or swept.

    Until `close`, the guard uses the database of the test, and Celery its eager mode: nothing is published.
    Each call is a run as in production: requested, claimed, executed and ended in the database.
    """

    def __init__(self, guard: Guard, database: str | None = None) -> None:
        """`database` is the URL of a database of the test; without it the guard's own is used."""
        self.guard = guard
        guard.use_database(database)
        self._app = guard.application()
        self._before = {name: self._app.conf[name] for name in _CHANGED}
        self._app.conf.update(task_always_eager=True, task_eager_propagates=False)

    def close(self) -> None:
        """The guard has its own database again, and Celery its own settings."""
        self._app.conf.update(self._before)
        self.guard.use_database(None)

    def sweep(self) -> int:
        """One round of the sweep; what is due is executed here. How many messages that were."""
        runtime = self.guard.runtime()
        runtime.engine.sweep()
        return publish_due(runtime.db, self.guard.tasks())

    def redeliver(self, task: GuardedTask, result: Any) -> Any:
        """The broker delivers the message of a call once more; Celery's result of that delivery.

        `result` is what `delay`, `apply_async` or `request` returned.
        """
        run_id = self._run_id(task, result)
        message = messages.of_run(self.guard.runtime().db, run_id)
        if message is None:
            raise LookupError(f"{task.name} has no such run; was its transaction rolled back?")
        return task.publish(
            outgoing.call_of(message), message.celery_id, headers={outgoing.RUN_HEADER: run_id}
        )

    def status(self, task: GuardedTask, result: Any) -> str | None:
        """How the run of a call stands, like success; None if there is no such run."""
        end = messages.end_of(self.guard.runtime().db, self._run_id(task, result))
        return None if end is None else end.status.value

    def value(self, task: GuardedTask, result: Any) -> Any:
        """The result of a run that succeeded, as it is stored."""
        end = messages.end_of(self.guard.runtime().db, self._run_id(task, result))
        if end is None or end.status is not Status.SUCCESS:
            raise LookupError(f"{task.name} has no result: {None if end is None else end.status}")
        return serialization.value_of(end.result)

    def kill_at(self, point: str, task: GuardedTask, *args: Any, **kwargs: Any) -> Any:
        """The task was called in a process of its own, which was killed (SIGKILL) at a fault point.

        The AsyncResult of the call, for `recover`. AssertionError, with all points that were met, if the
        process has not met this one. Points are named like finish.commit and finish.committed.
        """
        celery_id = secrets.token_hex(16)
        met = _killed_at(point, lambda: task.request_async(args, kwargs, task_id=celery_id))
        if met is not None:
            raise AssertionError(f"the task did not meet {point}; it met: {', '.join(met)}")
        return task.AsyncResult(celery_id)

    def recover(self, task: GuardedTask, result: Any) -> str | None:
        """What the sweep does once the lease of a dead worker has run out; the status of the run."""
        self._lose(self._run_id(task, result), Loss.PROCESS_DIED)
        self.sweep()
        return self.status(task, result)

    def freeze(self, task: GuardedTask, *args: Any, **kwargs: Any) -> "FrozenExecution":
        """A call whose execution is frozen as its body begins, and whose run another execution has ended."""
        frozen = FrozenExecution(task, args, kwargs)
        self._lose(self._run_id(task, frozen), Loss.LEASE_EXPIRED)
        self.sweep()
        return frozen

    def _lose(self, run_id: str, loss: Loss) -> None:
        db, rules = self.guard.runtime().db, self.guard.runtime().options.rules
        held = messages.held(db, run_id)
        if held is not None:
            died = held.process if loss is Loss.PROCESS_DIED else ""
            losses.lose(db, held.task_id, held.epoch, loss=loss, caps=rules.caps, process=died)
        messages.publish_soon(db, run_id)

    @staticmethod
    def _run_id(task: GuardedTask, result: Any) -> str:
        if isinstance(result, Requested):
            return str(result.run_id)
        return subjects.run_id(result.id, task.name)


class FrozenExecution:
    """An execution that stands still before the first line of its task."""

    def __init__(self, task: GuardedTask, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.id = secrets.token_hex(16)
        self._frozen, self._thawed = threading.Event(), threading.Event()
        self._body, self._task = task.run, task
        self._result: Any = None
        task.run = self._stopping(task.run)
        self._thread = threading.Thread(target=self._run, args=(args, kwargs), daemon=True)
        self._thread.start()
        if not self._frozen.wait(_SECONDS):
            raise AssertionError(f"{task.name} did not start within {_SECONDS:g} s")

    def _stopping(self, body: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(body)
        def stopped(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is self._thread:
                self._frozen.set()
                self._thawed.wait(_SECONDS)
            return body(*args, **kwargs)

        return stopped

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._result = self._task.apply_async(args, kwargs, task_id=self.id)

    def thaw(self) -> str:
        """It has gone on to its end; Celery's state of its delivery: IGNORED if it was fenced out."""
        self._thawed.set()
        self._thread.join(_SECONDS)
        self._task.run = self._body
        return str(self._result.state)


def _killed_at(point: str, call: Callable[[], Any]) -> list[str] | None:
    """None if the call, in a process of its own, was killed at this point; otherwise the points it met."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)

        def strike(name: str) -> None:
            os.write(writing, f"{name}\n".encode())
            if name == point:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            faults.arm(strike)
            call()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        met = lines.read().split()
    _, status = os.waitpid(pid, 0)
    return None if os.WIFSIGNALED(status) else list(dict.fromkeys(met))
