"""Guarded tasks on the command line: explained, listed, cancelled and called again."""

import pytest

from holdfast.cli import commands_write, status_command
from holdfast.cli import why as why_command


@pytest.fixture
def build(application, monkeypatch):
    """A task, and a command line on the same database."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", application.url)

    @application.guard.task("report:{report}", name="shop.build")
    def build(report, pages=1):
        return pages

    return build


def test_a_guarded_task_is_explained_in_its_own_words(application, build, capsys):
    """No plan and no publishing: it was called, started, finished, and called with other arguments."""
    with application.worker():
        assert build.delay(7).get(timeout=20) == 1
        assert build.delay(7, pages=2).get(timeout=20) == 2
    why_command.why("report:7", kind=None, tenant="default", as_json=False)
    printed = capsys.readouterr().out
    for words in (
        "generation 2 is done",
        "started the task",
        "finished the task",
        "called with other arguments",
    ):
        assert words in printed
    assert "the plan" not in printed


def test_status_shows_the_lane_of_guarded_tasks(application, build, capsys):
    """What is queued is counted, and it says where guarded tasks run."""
    build.delay(7)
    status_command.status(as_json=False)
    printed = capsys.readouterr().out
    assert "guarded tasks run in the workers of their application" in printed
    assert [line.split()[:2] for line in printed.splitlines() if line.startswith("guarded ")][1:] == [
        ["guarded", "1"]
    ]


@pytest.mark.g4
def test_a_retry_from_the_command_line_runs(application, build):
    """Cancelled and retried by a person, the call is published by the sweep and carried out."""
    requested = build.request(9, pages=5)
    commands_write.cancel("report:9", kind=None, tenant="default", as_json=False)
    options = {"kind": None, "tenant": "default", "force": False, "max_cost": None, "as_json": False}
    assert commands_write.retry("report:9", **options) == 0
    again = build.request(9, pages=5)
    assert (again.disposition, again.generation) == ("duplicate", requested.generation + 1)
    with application.worker():
        application.sweep_until(again.result.ready)
    assert again.result.get() == 5
