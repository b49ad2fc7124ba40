"""What is lost comes back: messages, processes and workers."""

import threading

import pytest
from celery.exceptions import TaskRevokedError
from kombu.exceptions import OperationalError
from sqlalchemy import bindparam, text, update

from holdfast.core.errors import SchemaError, StoreUnavailableError
from holdfast.core.isolation import SomeFailedError
from holdfast.guard import deliveries, subjects
from holdfast.guard.outgoing import OutgoingCall
from holdfast.guard.task import GuardedTask
from holdfast.store.base.schema import tasks
from holdfast.store.guarded import messages
from holdfast.store.protocol import claims
from tests.guard.application import GuardedApp, until

MOVE_ON = (
    update(tasks)
    .where(tasks.c.look_again_at > 0)
    .values(look_again_at=tasks.c.look_again_at - bindparam("s"))
)
EXPIRE = update(tasks).where(tasks.c.state == "running").values(lease_until=1.0)


def _change(application, statement, values=None):
    application.guard.runtime().db.write("test", lambda tx: tx.execute(statement, values or {}))


def test_a_message_that_the_broker_lost_is_published_again(application):
    """The database knows what was requested; after a minute without a worker it asks again."""

    @application.guard.task("report:{n}")
    def build(n):
        return n

    result = build.delay(7)
    assert application.flush() == 1
    application.sweep()
    assert application.flush() == 0  # a message may wait in a queue for a while
    _change(application, MOVE_ON, {"s": 61.0})
    with application.worker():
        application.sweep()
        assert result.get(timeout=10, interval=0.02) == 7


def test_a_message_that_waits_for_a_worker_is_published_ever_less_often(application):
    """A backlog of an hour must not fill the broker with copies."""

    @application.guard.task("report:{n}")
    def build(n): ...

    build.delay(7)
    copies = [1]
    for _ in range(120):
        _change(application, MOVE_ON, {"s": 60.0})
        _change(application, text("UPDATE holdfast_tasks SET due_at = due_at - 60"))
        application.sweep()
        copies.append(application.flush())
    assert 3 <= sum(copies) - 1 <= 8


def test_a_broker_that_is_down_loses_nothing(application):
    """`.delay` answers as always: the run is stored, and the sweep publishes it once the broker is back."""
    cut_off = GuardedApp(application.url, broker="redis://127.0.0.1:1/0")
    cut_off.celery.conf.task_publish_retry = False
    starts = []

    def build(n):
        starts.append(n)

    there, here = (each.guard.task("report:{n}", name="shop.build")(build) for each in (cut_off, application))
    result = there.delay(7)
    cut_off.sweep()
    with application.worker():
        application.sweep_until(lambda: here.AsyncResult(result.id).ready())
    cut_off.close()
    assert starts == [7]


def test_a_task_whose_lease_expired_runs_again_and_the_first_result_counts_for_nothing(application):
    """The first execution was frozen; it wakes up after the second has ended."""
    starts, thaw = [], threading.Event()

    @application.guard.task("report:{n}")
    def build(n):
        starts.append(n)
        if len(starts) == 1:
            thaw.wait(10)
            return "zombie"
        return "second"

    with application.worker():
        result = build.delay(7)
        until(lambda: starts)
        _change(application, EXPIRE)
        application.sweep_until(result.ready)
        assert result.get() == "second"
        thaw.set()
        threading.Event().wait(0.3)
        assert build.AsyncResult(result.id).get() == "second"
    assert len(starts) == 2


def test_a_process_that_dies_makes_its_task_due_at_once(application):
    """Its parent says so; the lease need not run out. The third death without progress ends the run."""

    @application.guard.task("report:{n}")
    def build(n): ...

    requested = build.request(7)
    guard = application.guard
    for death in range(3):
        application.flush()
        claimed = _claim(application, build, requested.run_id)
        assert claimed.epoch == 2 * death + 1
        guard.runtime().engine.host.has_died = lambda process: True
        guard.process_died(requested.run_id)
    end = messages.end_of(guard.runtime().db, requested.run_id)
    assert (end.status, end.error_code) == ("failed", "abandoned")
    with application.worker():
        application.sweep()
        with pytest.raises(Exception, match="the process that ran it died 3 times without any progress"):
            requested.result.get(timeout=10, interval=0.02)


def _claim(application, task, run_id):
    """Claim the run and do nothing with it, as a process that dies."""
    runtime = application.guard.working_runtime(task)
    return claims.claim_named(
        runtime.db,
        run_id,
        pipelines=runtime.engine.registry.pipelines,
        owner="dead",
        token=runtime.engine.host.token(),
        ttl=12.0,
        rules=claims.LockHeld(attempt_cap=3, times=0),
        carrier=runtime.engine.carrier.known(),
    )


def test_a_hard_time_limit_fails_the_run(application):
    """As Celery records the task. What its process still writes is fenced out."""

    @application.guard.task("report:{n}")
    def build(n): ...

    requested = build.request(7)
    _claim(application, build, requested.run_id)
    application.guard.ran_out_of_time(requested.run_id, 30)
    end = messages.end_of(application.guard.runtime().db, requested.run_id)
    assert (end.status, end.error_code) == ("failed", "time_limit")
    assert end.error_message == "it exceeded its hard time limit of 30 s"


def test_a_database_that_is_away_at_delivery_delays_the_task(application, monkeypatch):
    """The message is sent again with a delay, and nothing is lost."""

    @application.guard.task("report:{n}")
    def build(n):
        return n

    real, away = application.guard.working_runtime, [True, True]

    def unreachable(task):
        if away:
            away.pop()
            raise StoreUnavailableError("the database does not answer")
        return real(task)

    monkeypatch.setattr(deliveries, "STORE_AWAY", 0.1)
    monkeypatch.setattr(application.guard, "working_runtime", unreachable)
    with application.worker():
        assert build.delay(7).get(timeout=10, interval=0.02) == 7
    assert away == []


def test_a_database_that_is_down_at_import_does_not_matter(tmp_path):
    """Nothing is opened before it is needed; a call then says what is wrong in one line."""
    down = GuardedApp("postgresql://nobody@127.0.0.1:1/none")

    @down.guard.task("report:{n}")
    def build(n): ...

    with pytest.raises(StoreUnavailableError, match=r"^the database is unreachable"):
        build.delay(7)


def test_two_applications_publish_only_what_they_know(application, database_url):
    """Their sweeps share a database; a task that one does not have is left to the other."""
    other = GuardedApp(database_url)

    @other.guard.task(name="other.build")
    def build(n):
        return n

    @application.guard.task(name="shop.build")
    def own(n): ...

    result = build.delay(7)
    other.flush()
    _change(other, MOVE_ON, {"s": 61.0})
    application.sweep()
    with other.worker():
        other.sweep()
        assert result.get(timeout=10, interval=0.02) == 7
    other.close()
    assert subjects.kind_of("build") == "task.build"


def test_a_request_whose_response_was_lost_leaves_a_claimed_task_alone(application):
    """It committed, a worker claimed the task, and only then was the request tried again."""

    @application.guard.task("report:{n}")
    def build(n): ...

    call = OutgoingCall((7,), {}, {})
    message = call.message("an-id", build.name, "json")
    names = {"run_id": subjects.run_id("an-id", build.name), "patience": application.guard.silence}
    ask, db = application.guard.ask_of(build, call), application.guard.runtime().db
    assert messages.request(db, ask, message, messages.Timing(), **names).created
    claimed = _claim(application, build, names["run_id"])

    def again(tx):
        tx.again = True
        return messages.answer(tx, ask, message, messages.Timing(), **names)

    assert db.write("request", again).created
    held = messages.held(db, names["run_id"])
    assert (held.task_id, held.epoch) == (claimed.task_id, claimed.epoch)


def test_a_message_that_cannot_be_published_stops_no_other(application):
    """One cannot be read and one does not fit its task any more; the third is published."""

    @application.guard.task("report:{n}")
    def build(n):
        return n

    torn, strange, good = (build.request_async((n,), countdown=3) for n in range(3))
    body = "UPDATE holdfast_messages SET body = :body WHERE run_id = :run"
    call = OutgoingCall((1, 2, 3), {}, {}).message("x", build.name, "json")
    for run_id, value in ((torn.run_id, "{}"), (strange.run_id, call.body)):
        _change(application, text(body), {"body": value, "run": run_id})
    _change(application, text("UPDATE holdfast_tasks SET due_at = due_at - 5 - id"))
    with application.worker(), pytest.raises(SomeFailedError, match=r"1 of 3 failed; .*build: KeyError"):
        application.sweep()
    with application.worker():
        assert good.result.get(timeout=10, interval=0.02) == 2
    db = application.guard.runtime().db
    assert messages.end_of(db, strange.run_id).error_code == "bad_arguments"
    with pytest.raises(TypeError):
        strange.result.get(timeout=1)
    assert messages.end_of(db, torn.run_id).status == "queued"  # another worker may be able to read it
    _change(application, text("UPDATE holdfast_tasks SET due_at = due_at - 90000, look_again_at = 0"))
    application.sweep()
    assert messages.end_of(db, torn.run_id).error_code == "bad_message"
    assert torn.result.state == "FAILURE"


def test_a_spare_copy_that_expired_stops_no_execution(application):
    """The run was taken in time; a copy that Celery discards later says nothing about it."""
    starts, go = [], threading.Event()

    @application.guard.task("report:{n}")
    def build(n):
        starts.append(n)
        go.wait(10)
        return n

    with application.worker():
        requested = build.request_async((7,), expires=1.0)
        until(lambda: starts)
        threading.Event().wait(1.1)
        application.deliver_again(requested.run_id)
        threading.Event().wait(0.3)
        assert requested.result.state == "PENDING"
        go.set()
        assert requested.result.get(timeout=10, interval=0.02) == 7
    assert starts == [7]


def test_an_end_is_reported_until_celery_was_told(application):
    """The process that publishes the report dies, or the broker loses it: it is published again."""

    @application.guard.task("report:{n}")
    def build(n): ...

    requested = build.request_async((7,), expires=0.01)
    application.flush()
    threading.Event().wait(0.05)
    _change(application, MOVE_ON, {"s": 61.0})
    application.sweep()  # cancelled as expired
    application.sweep()  # and reported
    assert application.flush() == 1
    _change(application, text("UPDATE holdfast_messages SET report_at = report_at - 61"))
    with application.worker():
        application.sweep()
        with pytest.raises(TaskRevokedError):
            requested.result.get(timeout=10, interval=0.02)
    _change(application, text("UPDATE holdfast_messages SET report_at = report_at - 61"))
    application.sweep()
    assert application.flush() == 0


def test_a_broker_that_is_unreachable_for_a_moment_fails_no_retry(application, monkeypatch):
    """The run is put back and its message stored: the sweep publishes it, and Celery sees a retry."""
    seen = []

    @application.guard.task(bind=True)
    def flaky(self):
        seen.append(self.request.retries)
        if not self.request.retries:
            monkeypatch.setattr(GuardedTask, "publish", away)
            raise self.retry(countdown=0.1)
        return "done"

    real = GuardedTask.publish

    def away(*_, **__):
        monkeypatch.setattr(GuardedTask, "publish", real)
        raise OperationalError("the broker is unreachable")

    with application.worker():
        result = flaky.delay()
        until(lambda: result.state == "RETRY")
        application.sweep_until(result.ready)
    assert (seen, result.get()) == ([0, 1], "done")


def test_a_database_that_is_not_migrated_yet_delays_the_task(application, monkeypatch):
    """New workers may start before the migration has run."""

    @application.guard.task("report:{n}")
    def build(n):
        return n

    real, errors = application.guard.working_runtime, [SchemaError("run: holdfast migrate")]

    def old(task):
        if errors:
            raise errors.pop()
        return real(task)

    monkeypatch.setattr(deliveries, "STORE_AWAY", 0.1)
    monkeypatch.setattr(application.guard, "working_runtime", old)
    with application.worker():
        assert build.delay(7).get(timeout=10, interval=0.02) == 7
