"""`holdfast up`: everything on one machine, restarted when it dies, ended together, nothing left behind."""

import json
import os
import re
import signal
import urllib.request
from pathlib import Path

import pytest

from holdfast.core.states import Status
from tests.acceptance.patience import until


def part(up, name="worker"):
    """The process of a part, as `up` last named it."""
    return int(re.findall(rf"{name} started, process (\d+)", up.said())[-1])


@pytest.fixture
def up(premises):
    """An installation that is up."""
    made = premises.start("up", "-c", "1")
    made.says("holdfast@.* ready")
    return made


@pytest.mark.g4
def test_what_dies_is_started_again_and_ctrl_c_ends_all(premises, up):
    """A killed worker is back within seconds and does its work; one line tells of it."""
    made = part(up)
    first = premises.ask("nap", "document:first")  # a process that is still starting would complain
    assert premises.done(first).status is Status.SUCCESS
    os.kill(made, signal.SIGKILL)
    up.says("worker ended with code -9; starting it again in")
    asked = premises.ask("nap")
    assert premises.done(asked).status is Status.SUCCESS
    assert part(up) != made
    assert len(up.tree()) >= 4
    up.tell(signal.SIGINT)
    code, seconds = up.ended(30)
    assert (code, seconds < 20) == (0, True)  # no part waited for its drain of 25 s to be over
    assert "Traceback" not in up.said()


def test_nothing_is_left_behind_when_it_is_killed(premises, up):
    """The kernel tells each part, and each part its children."""
    tree = up.tree()
    assert len(tree) >= 4
    os.kill(up.pid, signal.SIGKILL)
    until(lambda: up.poll() == -signal.SIGKILL, 15, "it does not end")
    until(lambda: not [pid for pid in tree if is_alive(pid)], 15, "it leaves processes behind")


def test_a_first_visit_finds_a_service_with_something_in_it(premises):
    """One command: the API answers, the sample collection is indexed by the worker, and a search finds it."""
    up = premises.start("up", "--sample", "-c", "1")
    address = up.says(r"holdfast api: (http://\S+)")[1]

    def asked(path):
        with urllib.request.urlopen(f"{address}/api/v1{path}", timeout=10) as answer:
            return json.load(answer)

    def found():
        return [
            hit["title"] for hit in asked("/search?collection=sample&q=who+moves+the+crane+at+night")["hits"]
        ]

    until(lambda: "harbour-handbook.md" in found(), 60, "the sample is never indexed")
    until(lambda: len(asked("/collections/sample/documents")["documents"]) == 5, 60, "documents are missing")
    assert "sample started" in up.said()
    up.tell(signal.SIGINT)
    assert up.ended(30)[0] == 0
    assert up.said().count("sample started") == 1


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_part_that_can_never_work_ends_everything(premises):
    """Exit code 2 at once, with the part's own line, and no crash loop."""
    up = premises.start("up", kinds="no.such:thing")
    code, _ = up.ended(20)
    assert code == 2
    assert 1 <= up.said().count("which cannot be imported") <= 3  # each part says so once, if it gets to it
    assert "cannot work like this; ending everything" in up.said()
    assert "Traceback" not in up.said()


def test_a_part_that_cannot_work_now_is_tried_less_and_less(premises, require):
    """A refused password may be mended while it runs: a few lines, not hundreds."""
    url = require("redis").replace("redis://:", "redis://:wr0ng")
    up = premises.start("up", "-c", "1", broker_url=url)
    up.says("(?s)broker_refused.*starting it again.*broker_refused.*starting it again", 40)
    up.tell()
    code, seconds = up.ended(30)
    assert (code, seconds < 20) == (0, True)  # as above
    assert len(up.said().splitlines()) < 30
    assert "wr0ng" not in up.said()
