"""Deliveries of guarded tasks: doubled, stale and strange ones do not run."""

import threading

import pytest
from celery.exceptions import TaskRevokedError
from sqlalchemy import bindparam, select

from holdfast.guard import subjects
from holdfast.guard.outgoing import RUN_HEADER, OutgoingCall
from holdfast.store.base.schema import runs
from holdfast.store.guarded import messages
from tests.guard.application import until

_HEAD = select(runs.c.head_id).where(runs.c.id == bindparam("run_id"))


def _counting(application, key="report:{report_id}", **options):
    """A guarded task that counts its executions and waits for an event."""
    starts, go = [], threading.Event()
    go.set()

    @application.guard.task(key, name="shop.build", **options)
    def build(report_id):
        starts.append(report_id)
        go.wait(10)
        return report_id * 2

    return build, starts, go


def test_a_redelivery_while_the_task_runs_does_not_run(application):
    """It is acknowledged and ignored; the execution under way gives the result."""
    build, starts, go = _counting(application)
    go.clear()
    with application.worker():
        requested = build.request(7)
        until(lambda: starts)
        for _ in range(3):
            application.deliver_again(requested.run_id)
        threading.Event().wait(0.5)
        go.set()
        assert requested.result.get(timeout=10, interval=0.02) == 14
    assert starts == [7]


def test_a_redelivery_after_the_end_does_not_run(application):
    """Celery has the result already, so that nothing happens at all."""
    build, starts, _ = _counting(application)
    with application.worker():
        requested = build.request(7)
        assert requested.result.get(timeout=10, interval=0.02) == 14
        application.deliver_again(requested.run_id)
        build.delay(8).get(timeout=10, interval=0.02)
    assert starts == [7, 8]


def test_a_result_that_celery_lost_is_answered_from_the_database(application):
    """The worker died after the end of the run and before Celery stored its result."""
    build, starts, _ = _counting(application)
    with application.worker():
        requested = build.request(7)
        assert requested.result.get(timeout=10, interval=0.02) == 14
        requested.result.forget()
        application.deliver_again(requested.run_id)
        assert build.AsyncResult(requested.result.id).get(timeout=10, interval=0.02) == 14
    assert starts == [7]


def test_a_message_that_nobody_requested_is_adopted(application):
    """From `send_task`, beat, or from before the guard: its run begins with the delivery, and runs once."""
    _, starts, _ = _counting(application)
    with application.worker():
        result = application.celery.send_task("shop.build", (7,))
        assert result.get(timeout=10, interval=0.02) == 14
        application.deliver_again(subjects.run_id(result.id, "shop.build"))
        application.celery.send_task("shop.build", (8,)).get(timeout=10, interval=0.02)
    assert starts == [7, 8]


def test_two_adopted_messages_with_the_same_work_are_one_execution(application):
    """The second waits for the first and gives its result."""
    _, starts, go = _counting(application)
    go.clear()
    with application.worker():
        first = application.celery.send_task("shop.build", (7,))
        until(lambda: starts)
        second = application.celery.send_task("shop.build", (7,))
        threading.Event().wait(0.3)
        go.set()
        assert (first.get(timeout=10, interval=0.02), second.get(timeout=10, interval=0.02)) == (14, 14)
    assert starts == [7]


def test_a_message_of_a_run_that_was_rolled_back_does_not_run(application):
    """It names a run, and there is none."""
    build, starts, _ = _counting(application)
    with application.worker():
        build.publish(OutgoingCall((7,), {}, {}), "an-id", headers={RUN_HEADER: "gone"})
        build.delay(8).get(timeout=10, interval=0.02)
    assert starts == [8]


def test_a_failure_is_celerys_and_the_runs(application):
    """The exception is the function's own; the run has failed with its text."""

    @application.guard.task("report:{report_id}")
    def build(report_id):
        raise KeyError(f"no report {report_id}")

    with application.worker():
        requested = build.request(7)
        with pytest.raises(KeyError, match="no report 7"):
            requested.result.get(timeout=10, interval=0.02)
    end = messages.end_of(application.guard.runtime().db, requested.run_id)
    assert (end.status, end.error_code) == ("failed", "task_raised")
    assert "KeyError: 'no report 7'" in end.error_message


def test_a_cancelled_run_does_not_start(application):
    """Cancelled while its message waits: the delivery is revoked."""
    build, starts, _ = _counting(application)
    requested = build.request(7)
    engine = application.guard.runtime().engine
    head = engine.db.first(_HEAD, {"run_id": requested.run_id})
    engine.cancel(head.head_id)
    with application.worker(), pytest.raises(TaskRevokedError):
        requested.result.get(timeout=10, interval=0.02)
    assert starts == []


def test_a_function_that_is_called_is_a_function(application):
    """Outside a worker, and from its own body: no run, no database."""

    @application.guard.task("number:{n}")
    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    assert factorial(4) == 24
    with application.worker():
        assert factorial.delay(5).get(timeout=10, interval=0.02) == 120
