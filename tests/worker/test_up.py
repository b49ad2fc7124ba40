"""`holdfast up`: everything on one machine, restarted when it dies, ended together, nothing left behind."""

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import urllib.request
from pathlib import Path

import pytest

from holdfast.chaos.waiting import until
from holdfast.core.states import Status
from tests.worker.programs import PROGRAM


def part(up, name="worker"):
    """The process of a part, as `up` last named it."""
    return int(re.findall(rf"{name} started, process (\d+)", up.said())[-1])


@pytest.fixture
def up(install):
    """An installation that is up."""
    created = install.start("up", "-c", "1")
    created.says("holdfast worker: .* ready")
    return created


@pytest.mark.g4
def test_what_dies_is_started_again_and_ctrl_c_ends_all(install, up):
    """A killed worker is back within seconds and does its work; one line tells of it."""
    created = part(up)
    first = install.ask("nap", "document:first")  # a process that is still starting would complain
    assert install.done(first).status is Status.SUCCESS
    os.kill(created, signal.SIGKILL)
    up.says("worker exited with code -9; restarting in")
    requested = install.ask("nap")
    assert install.done(requested).status is Status.SUCCESS
    assert part(up) != created
    assert len(up.tree()) >= 4
    up.tell(signal.SIGINT)
    code, seconds = up.ended(30)
    assert (code, seconds < 20) == (0, True)  # no part waited for its drain of 25 s to be over
    assert "Traceback" not in up.said()


def test_nothing_is_left_behind_when_it_is_killed(install, up):
    """The kernel tells each part, and each part its children."""
    tree = up.tree()
    assert len(tree) >= 4
    os.kill(up.pid, signal.SIGKILL)
    until(lambda: up.poll() == -signal.SIGKILL, 15, "it does not end")
    until(lambda: not [pid for pid in tree if is_alive(pid)], 15, "it leaves processes behind")


def test_a_first_visit_finds_a_service_with_something_in_it(install):
    """One command: the sample collection is indexed, searched, and has its tree, graph and mind map."""
    up = install.start("up", "--sample", "-c", "1")
    address = up.says(r"Ready: (http://\S+)", 90)[1]

    def request(path):
        with urllib.request.urlopen(f"{address}/api/v1{path}", timeout=10) as answer:
            return json.load(answer)

    def found():
        return [
            hit["title"]
            for hit in request("/search?collection=sample&q=who+moves+the+crane+at+night")["hits"]
        ]

    until(lambda: "harbour-handbook.md" in found(), 60, "the sample is never indexed")
    until(
        lambda: len(request("/collections/sample/documents")["documents"]) == 12, 60, "documents are missing"
    )

    def derived():
        tree = request("/collections/sample/tree")["nodes"]
        entities = request("/collections/sample/graph")["entities"]
        topics = request("/collections/sample/mindmap")["topics"]
        parts = [tree, entities, topics]
        return all(parts) and [all(each["stand_in"] for each in part) for part in parts]

    assert until(derived, 90, "the sample has no tree, graph or mind map") == [True] * 3
    assert "sample started" in up.said()
    up.tell(signal.SIGINT)
    assert up.ended(30)[0] == 0
    assert up.said().count("sample started") == 1


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_part_that_can_never_work_ends_everything(install):
    """Exit code 2 at once, with the part's own line, and no crash loop."""
    up = install.start("up", kinds="no.such:thing")
    code, _ = up.ended(20)
    assert code == 2
    assert 1 <= up.said().count("which cannot be imported") <= 3  # each part says so once, if it gets to it
    assert "cannot start with this configuration; stopping everything" in up.said()
    assert "Traceback" not in up.said()


def test_a_part_that_cannot_work_now_is_tried_less_and_less(install, require):
    """A refused password may be mended while it runs: a few lines, not hundreds."""
    url = require("redis").replace("redis://:", "redis://:wr0ng")
    up = install.start("up", "-c", "1", broker_url=url)
    up.says("(?s)broker_refused.*restarting in.*broker_refused.*restarting in", 40)
    up.says("Not ready yet: worker; the API is at http://", 40)
    assert "Ready:" not in up.said()
    up.tell()
    code, seconds = up.ended(30)
    assert (code, seconds < 20) == (0, True)  # as above
    assert len(up.said().splitlines()) < 30
    assert "wr0ng" not in up.said()


def test_the_address_is_told_last(install):
    """After all that the parts say at their start, so that nobody has to look for it."""
    up = install.start("up", "-c", "1")
    address = up.says(r"Ready: (http://\S+)")[1]
    with urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
        assert answer.status == 200
    before = up.said().partition("Ready:")[0]
    assert re.search("holdfast worker: .* ready", before)


def test_a_log_of_warnings_alone_keeps_nobody_waiting_for_the_address(install):
    """That a worker is ready is known from itself, not from its log; each worker sweeps, and nobody else."""
    up = install.start("up", "-c", "1", log_level="warning")
    up.says(r"Ready: http://", 50)
    assert "sweep started" not in up.said()
    assert install.done(install.ask("nap", wakes=False)).status is Status.SUCCESS


@pytest.mark.parametrize("moment", ["api started", "worker started", "Ready:"])
def test_it_ends_within_seconds_from_any_moment_of_its_start(install, moment):
    """Nothing is in flight, so no part is waited for until it has to be killed (20 s at least)."""
    up = install.start("up", "-c", "1")
    up.says(moment, 60)
    up.tell()
    code, seconds = up.ended(60)
    assert (code, seconds < 15) == (0, True), up.said()
    assert "is killed" not in up.said()


def test_json_logs_stay_json(install):
    """Every line is one object that names its part, also those that a part or `up` itself says in words."""
    up = install.start("up", "-c", "1", log_format="json")
    up.says(r"Ready: http://")
    lines = [json.loads(line) for line in up.said().splitlines()]
    assert {"api", "worker", "up"} == {line["part"] for line in lines}
    assert all({"at", "level", "message"} <= set(line) for line in lines)


def test_a_port_that_is_taken_ends_it_and_names_who_has_it(install):
    """Exit code 4 and one line, before anything was started; with another port it works."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = str(taken.getsockname()[1])
        done = install.command("up", "--port", number)
        assert (done.returncode, done.stderr.count("\n")) == (4, 1)
        assert f"port {number}" in done.stderr
        assert f"it is held by process {os.getpid()} (" in done.stderr
        assert "[port_in_use]" in done.stderr
        up = install.start("up", "-c", "1", "--port", "0", port=number)
        assert number not in up.says(r"Ready: http://127.0.0.1:(\d+)")[1]


def test_a_driver_that_is_missing_is_named_with_its_extra(install, tmp_path):
    """Without the extra `redis` no command breaks apart over a Redis broker, and `up` does not go round."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['redis'] = None\n")
    for words in (["up"], ["worker"], ["status"], ["sweep", "--once"], ["index", str(tmp_path)]):
        environment = install.environment(broker_url="redis://127.0.0.1:1/0") | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [PROGRAM, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), words
        assert 'needs the redis extra: pip install "holdfast[redis]" [driver_missing]' in done.stderr


@pytest.mark.parametrize("words", [["up"], ["index", "."], ["migrate"], ["status"]])
def test_a_database_of_a_newer_release_is_one_line(install, words):
    """Exit code 4 and what to do; never a traceback."""
    with contextlib.closing(sqlite3.connect(install.database_url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE holdfast_version SET version_num = '9999'")
        connection.commit()
    done = install.command(*words)
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert "at revision 9999, which this code does not know; install a newer holdfast [" in done.stderr
