"""Retries, chains, groups, chords and the rest of Celery keep working as Celery documents them."""

import datetime as dt
import threading

import pytest
from celery import chain, chord, group, uuid
from celery.exceptions import MaxRetriesExceededError, Reject
from celery.utils.time import maybe_make_aware

from holdfast.guard import outgoing
from holdfast.store.guarded import messages
from tests.guard.application import until


def _tasks(application):
    """Two guarded tasks for arithmetic, and what each was called with."""
    calls = []

    @application.guard.task(name="sums.add")
    def add(a, b):
        calls.append((a, b))
        return a + b

    @application.guard.task(name="sums.total")
    def total(numbers):
        calls.append(tuple(numbers))
        return sum(numbers)

    return add, total, calls


def test_a_retry_goes_on_in_the_same_run(application):
    """`self.retry` counts as Celery counts; the run has one id and as many executions."""
    seen = []

    @application.guard.task("report:{n}", bind=True, max_retries=3)
    def flaky(self, n):
        seen.append((self.request.retries, application.guard.run().id))
        if self.request.retries < 2:
            raise self.retry(countdown=0.05)
        return n

    with application.worker():
        assert flaky.delay(7).get(timeout=10, interval=0.02) == 7
    assert [retries for retries, _ in seen] == [0, 1, 2]
    assert len({run for _, run in seen}) == 1


def test_a_long_retry_waits_in_the_database_and_not_in_the_broker(application):
    """Its message is published when it is due, so that no visibility timeout can double it."""
    seen = []

    @application.guard.task(bind=True)
    def flaky(self):
        seen.append(self.request.retries)
        if not self.request.retries:
            raise self.retry(countdown=2.5)
        return "done"

    with application.worker():
        result = flaky.delay()
        until(lambda: result.state == "RETRY")
        application.sweep_until(result.ready)
    assert (seen, result.get()) == ([0, 1], "done")


def test_retries_that_are_used_up_fail_the_run(application):
    """With the exception of the body, or Celery's own where there is none."""

    @application.guard.task(bind=True, max_retries=1, default_retry_delay=0.01)
    def always(self, error):
        raise self.retry(exc=ValueError(error) if error else None)

    with application.worker():
        with pytest.raises(ValueError, match="bad"):
            always.delay("bad").get(timeout=10, interval=0.02)
        with pytest.raises(MaxRetriesExceededError):
            always.delay("").get(timeout=10, interval=0.02)


def test_automatic_retries_work(application):
    """`autoretry_for` wraps the body; the guard is around both."""
    seen = []

    @application.guard.task(
        autoretry_for=(OSError,), retry_backoff=False, default_retry_delay=0.01, max_retries=5
    )
    def fetch(url):
        seen.append(url)
        if len(seen) < 3:
            raise OSError("cut")
        return len(seen)

    with application.worker():
        assert fetch.delay("a").get(timeout=10, interval=0.02) == 3


def test_a_chain_passes_results_on(application):
    """Each link is a run of its own."""
    add, _, calls = _tasks(application)
    with application.worker():
        assert chain(add.s(1, 2), add.s(10), add.s(100)).apply_async().get(timeout=10, interval=0.02) == 113
    assert calls == [(1, 2), (3, 10), (13, 100)]


def test_equal_members_of_a_group_are_one_execution_with_two_results(application):
    """Others wait under the id of each member, so that each gives the result of the one that ran."""
    add, _, calls = _tasks(application)
    with application.worker():
        members = group([add.s(1, 1), add.s(1, 1), add.s(2, 2)]).apply_async()
        assert members.get(timeout=10, interval=0.02) == [2, 2, 4]
    assert sorted(calls) == [(1, 1), (2, 2)]


def test_a_chord_calls_its_body_with_all_results(application):
    """Also when two of its members are the same call."""
    add, total, _ = _tasks(application)
    with application.worker():
        result = chord([add.s(n, n) for n in (1, 2, 2)], total.s()).apply_async()
        assert result.get(timeout=15, interval=0.02) == 10


def test_callbacks_and_errbacks_are_called(application):
    """`link` gets the result, `link_error` is called for a failure."""
    add, _, calls = _tasks(application)

    @application.guard.task(name="sums.failed")
    def failed(uuid):
        calls.append("failed")

    @application.guard.task(name="sums.broken")
    def broken():
        raise ValueError("no")

    with application.worker():
        add.apply_async((1, 2), link=add.s(10)).get(timeout=10, interval=0.02)
        result = broken.apply_async(link_error=failed.s())
        with pytest.raises(ValueError, match="no"):
            result.get(timeout=10, interval=0.02)
        application.sweep_until(lambda: len(calls) == 3)
    assert calls == [(1, 2), (3, 10), "failed"]


def test_a_task_may_be_replaced_by_another_and_by_itself(application):
    """`self.replace` keeps the id: the caller gets the result of what replaced the task."""
    add, _, _ = _tasks(application)

    @application.guard.task(bind=True, name="sums.indirect")
    def indirect(self, n):
        raise self.replace(add.s(n, n) if n == 3 else indirect.s(n + 1))

    with application.worker():
        assert indirect.delay(3).get(timeout=10, interval=0.02) == 6
        assert indirect.delay(1).get(timeout=10, interval=0.02) == 6


@pytest.mark.parametrize("later", [{"countdown": 2.5}, {"eta": 2.5}])
def test_a_task_that_is_to_start_later_waits_in_the_database(application, later):
    """Nothing is published before it is due; then the sweep publishes it."""
    add, _, calls = _tasks(application)
    if "eta" in later:
        later = {"eta": dt.datetime.now(dt.UTC) + dt.timedelta(seconds=later["eta"])}
    with application.worker():
        result = add.apply_async((1, 2), **later)
        threading.Event().wait(0.5)
        application.sweep()
        assert calls == []
        application.sweep_until(result.ready)
    assert calls == [(1, 2)]


def test_a_task_that_expires_is_revoked_and_its_run_cancelled(application):
    """No worker took it in time: neither a later worker nor the sweep starts it."""
    add, _, calls = _tasks(application)
    requested = add.request_async((1, 2), expires=0.2)
    threading.Event().wait(0.4)
    with application.worker():
        application.sweep()
        other = add.delay(3, 4)
        other.get(timeout=10, interval=0.02)
        application.sweep_until(lambda: requested.result.state == "REVOKED")
        until(lambda: add.request(1, 2).disposition == "accepted")
    assert calls[0] == (3, 4)


def test_eager_mode_runs_under_the_protocol(application):
    """`task_always_eager` needs no worker; the run, its result and its retries are as usual."""
    add, _, calls = _tasks(application)

    @application.guard.task(bind=True, name="sums.flaky")
    def flaky(self):
        if not self.request.retries:
            raise self.retry(countdown=0)
        return application.guard.run().generation

    application.celery.conf.task_always_eager = True
    assert add.delay(1, 2).get() == 3
    assert chain(add.s(1, 2), add.s(3)).apply_async().get() == 6
    assert flaky.delay().get() == 1
    assert len(calls) == 3


def test_a_time_without_a_zone_is_read_as_celery_reads_it(on_sqlite):
    """In UTC, whatever the zone of the application: the worker would discard the message otherwise."""
    on_sqlite.celery.conf.timezone = "America/New_York"
    later = dt.datetime.now(dt.UTC).replace(tzinfo=None) + dt.timedelta(minutes=10)
    call = outgoing.OutgoingCall((), {}, {"eta": later, "expires": later})
    assert 590 < call.delay < 610
    assert call.expires_at == maybe_make_aware(later, on_sqlite.celery.timezone).timestamp()


def test_a_message_that_is_requested_twice_is_one_run(application):
    """An unguarded predecessor in a chain was delivered again: its successor has the same id as before."""
    add, _, calls = _tasks(application)
    same = uuid()  # results in memory are those of every application of the process
    with application.worker():
        for _ in range(2):
            assert add.apply_async((1, 2), task_id=same).get(timeout=10, interval=0.02) == 3
        assert add.request_async((5, 6), task_id=same).disposition == "duplicate"
    assert calls == [(1, 2)]


def test_a_message_that_is_requested_again_with_other_arguments_runs_with_the_first(application):
    """The run is the one that was requested first, though the message of the second arrives before."""
    add, _, calls = _tasks(application)
    same = uuid()
    add.apply_async((1, 2), task_id=same)
    application.flush()
    add.apply_async((5, 6), task_id=same)
    with application.worker():
        assert add.AsyncResult(same).get(timeout=10, interval=0.02) == 3
    assert calls == [(1, 2)]


def test_a_message_from_before_a_retry_runs_with_the_arguments_of_the_retry(application):
    """The stored message counts, for its arguments and for how often it was retried."""
    seen = []

    @application.guard.task(bind=True, max_retries=3)
    def moving(self, step):
        seen.append((step, self.request.retries))
        if self.request.retries < 2:
            raise self.retry(args=(step + 1,), countdown=0)
        return step

    result = moving.delay(1)
    first = application.next_message()
    for _ in range(3):
        application.execute(first)
        application.flush()
    assert seen == [(1, 0), (2, 1), (3, 2)]
    assert result.get(timeout=10, interval=0.02) == 3


def test_a_retry_that_the_body_does_not_raise_is_made_all_the_same(application):
    """By `throw=False`, or because the body catches every exception."""
    seen = []

    @application.guard.task(bind=True)
    def quiet(self):
        seen.append(("quiet", self.request.retries))
        if not self.request.retries:
            self.retry(countdown=0.05, throw=False)
        return "done"

    @application.guard.task(bind=True)
    def greedy(self):
        seen.append(("greedy", self.request.retries))
        try:
            if not self.request.retries:
                raise self.retry(countdown=0.05)
        except Exception as error:
            raise ValueError("swallowed") from error
        return "done"

    with application.worker():
        assert quiet.delay().get(timeout=10, interval=0.02) == "done"
        assert greedy.delay().get(timeout=10, interval=0.02) == "done"
    assert seen == [("quiet", 0), ("quiet", 1), ("greedy", 0), ("greedy", 1)]


def test_a_rejected_message_is_a_failure(application):
    """As Celery records it; with `once` it may be tried again."""

    @application.guard.task("report:{n}", once=True)
    def build(n):
        raise Reject("no", requeue=False)

    with application.worker():
        requested = build.request(7)
        until(lambda: _status(application, requested.run_id) == "failed")
    assert build.request(7).disposition == "accepted"


def _status(application, run_id):
    return messages.end_of(application.guard.runtime().db, run_id).status


def test_the_callbacks_of_a_duplicate_are_called(application):
    """It joins the run under way under an id of its own."""
    _, total, calls = _tasks(application)
    go, started = threading.Event(), threading.Event()

    @application.guard.task(name="sums.slow")
    def slow(n):
        started.set()
        go.wait(10)
        return [n]

    with application.worker():
        first = slow.delay(7)
        assert started.wait(10)
        second = slow.apply_async((7,), link=total.s())
        assert second.id != first.id
        go.set()
        assert second.get(timeout=10, interval=0.02) == [7]
        until(lambda: (7,) in calls)


def test_a_callback_that_is_called_again_is_the_same_call(application):
    """A worker called it and died before it stored the result: at the next delivery it has its old id."""
    add, _, calls = _tasks(application)
    result = add.apply_async((1, 2), link=[add.s(10), add.si(5, 5)], task_id="first")
    message = application.next_message()
    for _ in range(2):
        application.execute(message)
        for _ in ("callbacks", "of it"):
            application.execute(application.next_message())
        assert result.get(timeout=10, interval=0.02) == 3
        application.celery.backend.forget("first")  # as if it had not been stored
    assert sorted(calls) == [(1, 2), (3, 10), (5, 5)]
