"""`holdfast status`: workers, those that were lost, wake-ups, leases and what was refused."""

import json

import pytest
from sqlalchemy import update

from holdfast.core.states import LANE_RANK
from holdfast.store.base import schema
from holdfast.store.features import open_database
from holdfast.store.protocol import claims, duty_schedule, workers
from holdfast.store.protocol.workers import Worker, WorkerState
from holdfast.worker import sender


def told(name, state=WorkerState.WORKING, **changes):
    """What a worker says of itself."""
    values = {
        "id": name,
        "name": name,
        "host": "h",
        "pid": 7,
        "version": "0",
        "broker": "redis://h/0",
        "health": "http://127.0.0.1:9100",
        "lanes": tuple(LANE_RANK),
        "pipelines": ("nap@1",),
        "processes": 2,
        "busy": 1,
        "counts": {"claims": 5, "redelivered": 2, "spare_wake_ups": 3, "skipped_finished": 4},
        "state": state,
    }
    return Worker(**values | changes)


@pytest.fixture
def installation(install):
    """A worker at work, one that was lost, one that has stopped, a task in hand, and waiting wake-ups."""
    workers.report(install.db, told("able"))
    workers.report(install.db, told("gone"))
    workers.report(install.db, told("old", WorkerState.STOPPED, counts={"strange_messages": 6}))
    silent = update(schema.workers).where(schema.workers.c.id == "gone")
    install.db.write("by_hand", lambda tx: tx.execute(silent.values(seen_at=schema.workers.c.seen_at - 60)))
    install.ask("nap", "document:1", wakes=False)
    install.ask("nap", "document:2", wakes=False)
    values = {"lanes": list(LANE_RANK), "pipelines": ["nap@1"], "owner": "able/7", "token": "t" * 32}
    assert claims.claim_best(install.db, ttl=12.0, **values) is not None
    sending = sender.open_sender(install.settings())
    for _ in range(3):
        sending.wake("bulk")
    sending.close()
    return install


@pytest.fixture
def status(holdfast, installation):
    def call(*words, **changes):
        values = {"database_url": installation.database_url, "broker_url": installation.broker_url}
        code, out, err = holdfast("status", *words, **values | changes)
        assert (code, err) == (0, "")
        return out

    return call


def test_a_person_sees_how_things_stand(status):
    """The lost worker is called lost, the stopped one is not shown, and numbers are in their place."""
    lines = status().splitlines()
    line = lambda word: next(each.split() for each in lines if each.startswith(word))
    assert line("able")[1:3] == ["working", "1/2"]
    assert line("gone")[1] == "lost"
    assert not [each for each in lines if each.startswith("old")]
    assert line("bulk")[1:4] == ["1", "0", "1"]
    assert line("bulk")[-1] == "3"
    assert "leases: 1 held, 0 expired and due to be taken over" in lines
    ignored = next(each for each in lines if each.startswith("ignored:"))
    assert "4 redelivered messages, 6 surplus wake-ups" in ignored
    assert "6 unrecognized messages, messages skipped: 8 finished" in ignored


def test_a_script_gets_the_same_as_json(status):
    """Every number that a person sees, and the stopped worker too."""
    known = json.loads(status("--json"))
    assert {each["name"]: each["state"] for each in known["workers"]} == {
        "able": "working",
        "gone": "lost",
        "old": "stopped",
    }
    assert next(each for each in known["queues"] if each["lane"] == "bulk")["messages"] == 3
    assert [(each["owner"], each["left"] > 0) for each in known["leases"]] == [("able/7", True)]
    assert known["refusals"] == {
        "redelivered": 4,
        "spare_wake_ups": 6,
        "skipped": {"finished": 8},
        "fenced_out": 0,
        "leases_lost": 0,
        "strange_messages": 6,
    }


def test_duties_of_the_sweep_that_are_late_or_fail_have_a_line(status, installation):
    """All is well in one line; otherwise each in trouble, with what it said."""
    db = open_database(installation.database_url)
    duty_schedule.enrol(db, {"drift": 60.0, "shelf": 3600.0})
    assert "sweep: 2 duties on time" in status()
    duty_schedule.note_failure(db, "drift", 3, "it took longer than 30 s")
    db.close()
    assert "sweep: drift is on time; failed 3 times: it took longer than 30 s" in status()
    told = {each["name"]: each["failures"] for each in json.loads(status("--json"))["duties"]}
    assert told == {"drift": 3, "shelf": 0}


def test_a_broker_that_is_away_is_told_and_not_waited_for(status):
    """The rest is shown all the same, and no password with it."""
    out = status(broker_url="redis://:s3cret@127.0.0.1:9/0")
    assert (
        "the broker redis://127.0.0.1:9/0 is not responding; work is accepted and waits until it is back"
        in out
    )
    assert "able" in out
    assert "s3cret" not in out


def test_an_installation_without_workers_says_what_to_start(holdfast, install):
    """The first thing that a newcomer needs to know."""
    code, out, _ = holdfast("status", database_url=install.database_url, broker_url=install.broker_url)
    assert code == 0
    assert "no worker is online; start one with: holdfast worker" in out
