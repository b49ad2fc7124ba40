"""Health is progress: what each address answers, and what makes it answer 503."""

import json
import os
import signal
import threading
import urllib.error
import urllib.request
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select

from holdfast import bootstrap
from holdfast.chaos.waiting import until
from holdfast.clock import boot_time
from holdfast.core.errors import StoreUnavailableError
from holdfast.core.records import Ask
from holdfast.core.states import LANE_RANK
from holdfast.engine import wakeups
from holdfast.engine.kinds import Kind
from holdfast.store.base.schema import workers
from holdfast.store.protocol.workers import WorkerState
from holdfast.store.protocol.workers import known as known_workers
from holdfast.worker import supervisor as watching
from holdfast.worker.health import HealthLimits, HealthServer, WorkerHealth
from holdfast.worker.shared_state import Mark, PoolState
from holdfast.worker.supervisor import Pace, WorkerIdentity, WorkerSupervisor

DETAILS = {
    "ok",
    "problems",
    "worker",
    "database",
    "broker",
    "draining",
    "up",
    "last_sweep",
    "last_wake_up",
    "last_claim",
    "last_renewal",
    "last_end",
    "claims",
    "renewals",
    "processes",
}
QUICK = Pace(
    report_every=0.0, look_every=0.02, hard_grace=0.1, cure_after=0.1, deaf_after=0.2, most_cures=1_000_000
)
# A machine that stands still for a second is no fault of the worker's. A fault that is told of shows soon.
PATIENT = HealthLimits(sweep=30.0, look=30.0, start=0.0)
IMPATIENT = replace(PATIENT, sweep=0.5)


@pytest.fixture
def supervisor(install):
    """The side duties of a worker whose only process is this one; the broker is connected."""
    card = WorkerIdentity("id", "w", "filesystem:///x", tuple(LANE_RANK), ("nap@1",), 1, "http://127.0.0.1:1")
    pool_state = PoolState(2)
    pool_state.rows[0].enter()
    side_duties = WorkerSupervisor(
        install.settings(sweep_interval=0.05), card, pool_state, wakeups.Nobody(), QUICK
    )
    side_duties.is_connected = lambda: True
    yield side_duties
    side_duties.settings = install.settings(drain_timeout=60)  # the watch must not end the tests
    side_duties.stop()


@pytest.fixture
def health(supervisor):
    """Who judges it, patiently."""
    return WorkerHealth(supervisor, PATIENT)


@pytest.fixture
def answers(health):
    """`answers("/readyz")`: status, content type and body of the health port."""
    server = HealthServer("127.0.0.1", 0)
    server.start(health)

    def get(path):
        try:
            with urllib.request.urlopen(server.url + path, timeout=30) as output:
                return output.status, output.headers["Content-Type"], output.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["Content-Type"], error.read().decode()

    yield get
    server.stop()


def judged(answers, path):
    status, kind, body = answers(path)
    assert kind == "application/json"
    payload = json.loads(body)
    assert set(payload) >= DETAILS
    assert payload["ok"] is (status == 200)
    assert bool(payload["problems"]) is (status == 503)
    return status, payload


def healthy(supervisor, answers):
    supervisor.start()
    until(lambda: answers("/readyz")[0] == 200, 5, "it never becomes ready")


def test_a_worker_that_works_is_healthy_and_ready(supervisor, answers):
    """Both answer 200 with everything that the judgement rests on."""
    healthy(supervisor, answers)
    for path in ("/healthz", "/readyz", "/healthz?verbose"):
        status, output = judged(answers, path)
        assert status == 200
    assert output["worker"]["name"] == "w"
    assert output["processes"] == [
        {
            "pid": os.getpid(),
            "task": None,
            "busy_for": None,
            "last_sign": pytest.approx(0, abs=10),
            "up": pytest.approx(0, abs=10),
        }
    ]
    assert output["last_sweep"] < 5


def test_any_other_address_is_not_found(answers):
    """In the one shape of errors."""
    status, kind, body = answers("/")
    assert (status, kind) == (404, "application/json")
    assert json.loads(body)["error"]["code"] == "not_found"


def test_metrics_are_what_prometheus_reads(supervisor, answers):
    """Every family parses, has a name of ours, and says the same as the health page."""
    healthy(supervisor, answers)
    supervisor.pool_state.rows[0].add("claims")
    supervisor.strangers = lambda: 3
    until(lambda: supervisor.progress.strangers == 3, 5, "the watch never counts the strange messages")
    status, kind, body = answers("/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    result = {family.name: family for family in text_string_to_metric_families(body)}
    assert all(name.startswith("holdfast_worker_") for name in result)
    assert len(result) == len([line for line in body.splitlines() if line.startswith("# TYPE")])
    value = lambda name: result[f"holdfast_worker_{name}"].samples[0].value
    assert (value("claims"), value("strange_messages"), value("processes")) == (1, 3, 1)
    assert (value("healthy"), value("ready"), value("broker_connected")) == (1, 1, 1)
    assert {"ending"} == set(result["holdfast_worker_tasks"].samples[0].labels)
    assert value("seconds_since_last_sweep") < 5


def test_a_database_that_is_away_fails_ready_only(supervisor, health, answers, monkeypatch):
    """A restart would not bring it back; the reason is told."""
    healthy(supervisor, answers)

    def away(*_):
        raise StoreUnavailableError("the database does not answer (gone); check that it runs")

    monkeypatch.setattr(supervisor._runtime.engine.sweeper, "sweep", away)
    until(lambda: answers("/readyz")[0] == 503, 5, "it stays ready")
    assert "the database does not answer (gone)" in judged(answers, "/readyz")[1]["problems"][0]
    health._patience = IMPATIENT
    since = lambda: boot_time() - supervisor.progress.swept
    until(lambda: since() > IMPATIENT.sweep, 5, "it sweeps")  # the fault is the database's all the same
    assert judged(answers, "/healthz")[0] == 200
    monkeypatch.undo()
    until(lambda: answers("/readyz")[0] == 200, 5, "it does not recover")


def test_a_broker_that_is_away_fails_ready_only(supervisor, answers, install):
    """Also while work is due: nobody can be woken, and a restart would not bring the broker back."""
    supervisor.is_connected = lambda: False
    supervisor.start()
    due_for_long(install)
    until(lambda: supervisor.progress.swept, 5, "it does not sweep")
    until(lambda: boot_time() - supervisor.progress.began > 3 * QUICK.deaf_after, 5, "time does not pass")
    status, output = judged(answers, "/readyz")
    assert (status, output["problems"]) == (503, ["the broker is not connected"])
    assert judged(answers, "/healthz")[0] == 200


def due_for_long(install, kind="nap"):
    """A task that has been due for a while, and a wake-up that never came."""
    with bootstrap.open_runtime(install.settings(), (Kind(kind, lambda _: None),)) as runtime:
        runtime.engine.request(Ask(kind=kind, subject="document:1", content="a"))


def test_a_worker_that_takes_nothing_is_deaf(supervisor, answers, install):
    """Work is due, a process is free, the broker is connected, and none is claimed: a restart would help."""
    due_for_long(install)
    supervisor.start()
    deaf = "work is due in its lanes and a process is free, but it takes none"
    until(lambda: deaf in judged(answers, "/healthz")[1]["problems"], 5, "it counts as healthy")
    supervisor.pool_state.rows[0][Mark.LAST_CLAIM] = boot_time() + 60
    until(lambda: answers("/healthz")[0] == 200, 5, "a claim does not heal it")


def test_a_deaf_worker_connects_anew_and_ends_if_that_does_not_help(supervisor, install, monkeypatch):
    """Whoever started it starts it again; an orchestrator without probes is helped as well."""
    signals, tries = [], []
    monkeypatch.setattr(watching.os, "kill", lambda pid, number: signals.append(number))
    supervisor.pace = replace(QUICK, most_cures=2)
    supervisor.reconnect = lambda: tries.append(len(tries))
    due_for_long(install)
    supervisor.start()
    until(lambda: signal.SIGTERM in signals, 5, "it stays deaf for ever")
    assert tries == [0, 1]


def test_a_busy_worker_is_not_deaf(supervisor, answers, install):
    """Every process has a task in hand; what waits, waits its turn."""
    supervisor.pool_state.rows[0][Mark.BUSY_SINCE] = boot_time()
    due_for_long(install)
    healthy(supervisor, answers)
    until(lambda: boot_time() - supervisor.progress.began > 3 * QUICK.deaf_after, 5, "time does not pass")
    sweeps = supervisor.progress.sweeps
    until(lambda: supervisor.progress.sweeps > sweeps + 2, 5, "it does not sweep")
    assert judged(answers, "/healthz")[0] == 200


def test_work_of_an_unknown_kind_makes_nobody_deaf(supervisor, answers, install):
    """The worker cannot do it, so it does not count."""
    due_for_long(install, "other")
    healthy(supervisor, answers)
    until(lambda: boot_time() - supervisor.progress.began > 3 * QUICK.deaf_after, 5, "time does not pass")
    sweeps = supervisor.progress.sweeps
    until(lambda: supervisor.progress.sweeps > sweeps + 2, 5, "it does not sweep")
    assert judged(answers, "/healthz")[0] == 200


def test_a_draining_worker_is_alive_and_not_ready(supervisor, answers):
    """It gets no new traffic, and nobody kills it while it settles."""
    healthy(supervisor, answers)
    supervisor.settings = supervisor.settings.model_copy(update={"drain_timeout": 60.0})
    supervisor.drain()
    status, output = judged(answers, "/readyz")
    assert (status, output["problems"], output["draining"]) == (503, ["the worker is stopping"], True)
    assert judged(answers, "/healthz")[0] == 200


def test_a_hung_process_is_told_and_killed(supervisor, answers, monkeypatch):
    """Past its limit `/readyz` names it; after the grace it is killed; if that fails so does `/healthz`."""
    killed = []
    monkeypatch.setattr(watching.os, "kill", lambda pid, number: killed.append((pid, number)))
    healthy(supervisor, answers)
    row = supervisor.pool_state.rows[0]
    row[Mark.TASK] = 7
    row[Mark.HARD_AT] = boot_time()
    until(lambda: "exceeded the hard time limit of task 7" in answers("/readyz")[2], 5, "it is not told")
    until(lambda: (os.getpid(), 9) in killed, 5, "it is not killed")
    until(lambda: answers("/healthz")[0] == 503, 5, "it counts as healthy for ever")
    assert "was not killed" in judged(answers, "/healthz")[1]["problems"][0]
    assert supervisor.progress.killed


def test_no_processes_and_no_sweep_are_faults(supervisor, health, answers, monkeypatch):
    """A main process alone carries out nothing, and one that does not sweep forgets."""
    healthy(supervisor, answers)
    stuck = threading.Event()
    monkeypatch.setattr(supervisor._runtime.engine.sweeper, "sweep", lambda: stuck.wait(60))
    supervisor.pool_state.rows[0][Mark.PID] = 0
    health._patience = IMPATIENT
    until(lambda: "the sweep has not run" in answers("/healthz")[2], 5, "it is not told")
    assert "there are no processes to run tasks" in answers("/healthz")[2]
    stuck.set()


def test_a_sweep_that_hangs_does_not_make_a_working_worker_look_lost(
    supervisor, answers, install, monkeypatch
):
    """The heartbeat has a thread and a connection of its own."""
    healthy(supervisor, answers)
    stuck, runtime = threading.Event(), supervisor._runtime
    hanging = threading.Event()
    monkeypatch.setattr(runtime.engine.sweeper, "sweep", lambda: hanging.set() or stuck.wait(60))
    assert hanging.wait(30)
    beats = lambda: runtime.db.look(select(workers.c.seen_at))[0].seen_at
    for _ in range(3):
        before = beats()
        until(lambda before=before: beats() > before, 30, "it is silent while the sweep hangs")
    assert [each.state for each in known_workers(runtime.db)] == [WorkerState.WORKING]
    stuck.set()


def test_a_server_that_never_started_can_be_stopped():
    """A worker that fails before its pool is up must end, not wait for its own health."""
    done = threading.Event()
    thread = threading.Thread(target=lambda: (HealthServer("127.0.0.1", 0).stop(), done.set()), daemon=True)
    thread.start()
    assert done.wait(60)
