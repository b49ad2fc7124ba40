"""`holdfast.testing`: guarded tasks in the tests of an application, under the full protocol."""

import subprocess
import sys

import pytest
from celery import Celery

from holdfast import Guard


@pytest.fixture
def shop(guard_tester):
    """A guard whose own database cannot be reached, a task that counts its executions, and a tester."""
    app = Celery("shop", broker="redis://127.0.0.1:1", set_as_current=False)
    guard = Guard(app, database="postgresql://nobody@127.0.0.1:1/none", sweep=False)
    starts = []

    @guard.task("report:{report}", name="build")
    def build(report, text="well"):
        starts.append(text)
        guard.run().check()
        return text

    return guard_tester(guard), build, starts


def test_calls_run_at_once_and_leave_runs(shop):
    """A call gives its result, and its run has succeeded; what was requested runs as well."""
    tester, build, starts = shop
    result = build.delay(7)
    requested = build.request(8, text="fine")
    assert (result.get(), requested.disposition, starts) == ("well", "accepted", ["well", "fine"])
    assert [tester.status(build, each) for each in (result, requested)] == ["success", "success"]
    assert tester.value(build, requested) == "fine"


def test_a_redelivery_does_not_run(shop):
    """The message comes once more, and the body does not run."""
    tester, build, starts = shop
    result = build.delay(7)
    tester.redeliver(build, result)
    assert starts == ["well"]


def test_what_waits_runs_when_it_is_swept(shop, holdfast_database):
    """A call with a countdown is not executed before it is due."""
    tester, build, starts = shop
    requested = build.request_async((7,), {}, countdown=60)
    assert tester.sweep() == 0
    assert (starts, tester.status(build, requested)) == ([], "queued")


@pytest.mark.parametrize(
    ("point", "before"),
    [("request.committed", "queued"), ("claim.committed", "running"), ("finish.commit", "running")],
)
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_killed_process_is_recovered_from(shop, point, before):
    """Killed at a point, the run stands as the database has it, and the next sweep ends it."""
    tester, build, _ = shop
    result = tester.kill_at(point, build, 7)
    assert tester.status(build, result) == before
    assert tester.recover(build, result) == "success"


def test_killed_before_the_commit_there_is_no_run(shop):
    """The request was not committed; a point that is not met names those that were."""
    tester, build, _ = shop
    result = tester.kill_at("request.commit", build, 7)
    assert tester.status(build, result) is None
    with pytest.raises(AssertionError, match=r"did not meet nowhere; it met: .*request\.commit, request\."):
        tester.kill_at("nowhere", build, 8)


@pytest.mark.g2
def test_a_frozen_execution_is_fenced_out(shop):
    """It wakes up after another has ended its run: its body is stopped, and its delivery ignored."""
    tester, build, starts = shop
    frozen = tester.freeze(build, 7)
    assert tester.status(build, frozen) == "success"
    assert frozen.thaw() == "IGNORED"
    assert len(starts) == 2


def test_afterwards_the_guard_is_as_before(guard_tester):
    """Database and eager mode are those of the application again."""
    app = Celery("other", set_as_current=False)
    guard = Guard(app, database="sqlite:///own.db", sweep=False)
    tester = guard_tester(guard)
    assert app.conf.task_always_eager
    tester.close()
    assert not app.conf.task_always_eager
    assert guard.address() == "sqlite:///own.db"


def test_the_plugin_imports_nothing_for_suites_that_do_not_use_it(tmp_path):
    """A suite without guarded tasks loads neither SQLAlchemy nor Celery."""
    (tmp_path / "test_plain.py").write_text(
        "import sys\ndef test_it(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.hasplugin('holdfast')\n"
        "    assert not {'sqlalchemy', 'celery', 'pydantic', 'alembic'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
