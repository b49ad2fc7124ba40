"""Calls of guarded tasks: what is published, what is a duplicate, what replaces what."""

import threading

import pytest
from celery.exceptions import TaskRevokedError

from holdfast import Duplicate
from holdfast.core.errors import BadRequestError
from tests.guard.application import until


def test_a_guarded_task_gives_its_result_as_any_other(application):
    """`.delay` answers an AsyncResult, and the function runs once."""
    starts = []

    @application.guard.task("report:{report_id}")
    def build(report_id, *, pages=1):
        starts.append(report_id)
        return {"report": report_id, "pages": pages}

    with application.worker():
        result = build.delay(7, pages=3)
        assert result.get(timeout=10, interval=0.02) == {"report": 7, "pages": 3}
    assert starts == [7]


def test_a_double_click_is_one_execution_and_both_get_its_result(application):
    """The second call is a duplicate: nothing is published, and its AsyncResult is that of the first."""
    go, starts = threading.Event(), []

    @application.guard.task("report:{report_id}")
    def build(report_id):
        starts.append(report_id)
        go.wait(10)
        return "built"

    with application.worker():
        first, second = build.delay(7), build.delay(report_id=7)
        requested = build.request(7)
        assert first.id == second.id == requested.result.id
        assert requested.disposition == "duplicate"
        with pytest.raises(Duplicate, match="is not done again"):
            requested.require()
        go.set()
        assert second.get(timeout=10, interval=0.02) == "built"
    assert starts == [7]


def test_a_call_may_be_made_again_after_it_has_ended(application):
    """Without `once` a finished call is done again: a nightly task must run every night."""
    starts = []

    @application.guard.task
    def nightly():
        starts.append(1)

    with application.worker():
        nightly.delay().get(timeout=10, interval=0.02)
        nightly.delay().get(timeout=10, interval=0.02)
    assert len(starts) == 2


def test_once_keeps_a_success_for_ever_or_for_so_many_seconds(application):
    """The same call answers with the first result; a failure may be tried again."""
    starts = []

    @application.guard.task(once=True)
    def charge(order):
        starts.append(order)
        if len(starts) == 1:
            raise ValueError("declined")
        return order

    @application.guard.task("letter:{name}", once=0.01)
    def send(name):
        starts.append(name)

    with application.worker():
        with pytest.raises(ValueError, match="declined"):
            charge.delay(1).get(timeout=10, interval=0.02)
        first = charge.delay(1)
        first.get(timeout=10, interval=0.02)
        again = charge.request(1)
        assert (again.disposition, again.result.id) == ("unchanged", first.id)
        send.delay("a").get(timeout=10, interval=0.02)
        until(lambda: send.request("a").created)
        until(lambda: len(starts) == 4)
    assert starts == [1, 1, "a", "a"]


def test_other_arguments_under_the_same_key_replace_the_call_under_way(application):
    """The older execution is fenced out: its result is dropped, and who waits for it is told."""
    started, go = threading.Event(), threading.Event()

    @application.guard.task("report:{report_id}")
    def build(report_id, version):
        if version == 1:
            started.set()
            go.wait(10)
        return version

    with application.worker():
        old = build.delay(7, 1)
        assert started.wait(10)
        new = build.request(7, 2)
        assert new.disposition == "superseding"
        assert new.result.get(timeout=10, interval=0.02) == 2
        go.set()
        with pytest.raises(TaskRevokedError):
            old.get(timeout=10, interval=0.02)


def test_calls_of_two_tenants_are_two_calls(application):
    """What one tenant has under way does not concern another."""

    @application.guard.task("report:{report_id}")
    def build(report_id):
        return report_id

    with application.guard.tenant("a"):
        first = build.request(7)
    with application.guard.tenant("b"):
        second = build.request(7)
    assert (first.disposition, second.disposition) == ("accepted", "accepted")


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ("report", r"has the wrong form; it must be like report:\{report_id\}"),
        ("report:", "has the wrong form"),
        ("report:all", "names no argument of the task; its arguments are: report_id, note"),
        ("report:{id}", "names 'id'; the arguments of the task are: report_id, note"),
        ("Report:{report_id}", "has the wrong form"),
        ("report:a b{report_id}", "may contain letters, digits and"),
    ],
)
def test_a_key_that_cannot_work_is_refused_when_the_task_is_declared(on_sqlite, key, error):
    """One line that says what is wrong with it."""
    with pytest.raises(BadRequestError, match=error):

        @on_sqlite.guard.task(key)
        def build(report_id, note=""): ...


def test_two_tasks_with_one_name_are_refused(on_sqlite):
    """Celery would silently run the first function for both."""

    @on_sqlite.guard.task(name="shop.build")
    def build(): ...

    with pytest.raises(
        BadRequestError, match=r"two guarded tasks are called 'shop.build': .*build and .*other"
    ):

        @on_sqlite.guard.task(name="shop.build")
        def other(): ...


def test_arguments_that_cannot_be_sent_are_refused_before_anything_is_stored(on_sqlite):
    """The error names the serializer; no run exists."""

    @on_sqlite.guard.task("report:{report_id}")
    def build(report_id, thing=None):
        return report_id

    with pytest.raises(BadRequestError, match="cannot be sent with the serializer json"):
        build.delay(7, thing=object())
    with pytest.raises(TypeError):
        build.delay(7, 8, 9)
    assert build.request(7).disposition == "accepted"


def test_early_acknowledgement_is_refused(on_sqlite):
    """Without late acknowledgement a lost worker would be a failure for Celery, and a run for us."""
    with pytest.raises(BadRequestError, match="a guarded task needs acks_late=True"):

        @on_sqlite.guard.task(acks_late=False)
        def build(): ...
