"""Real Celery applications, badly and well configured, before the checks that need no server to tell."""

import subprocess
import sys

import celery_once
import celery_singleton
import pytest

from holdfast import Guard, settings
from holdfast.doctor import catalogue, gather
from holdfast.doctor.facts import Declared
from holdfast.doctor.findings import FindingState
from holdfast.doctor.probes import celery_app, clients, machine
from holdfast.worker import examination
from tests.doctor.examining import celery, is_fine, is_harmless, is_problem, of_app

LATE = {"options": {"visibility_timeout": 7200}}
SINGLETON = {"base": celery_singleton.Singleton, "singleton_backend_url": "redis://127.0.0.1:1/0"}
ONCE = {"base": celery_once.QueueOnce, "ONCE": {"backend": "x", "settings": {"url": "redis://127.0.0.1:1/0"}}}
RABBIT = "amqp://shop:own-secret@127.0.0.1:1/shop"
BEAT = {"beat_schedule": {"nightly": {"task": "shop.build", "schedule": 60.0}}}

# By check: settings that it must find, settings that it must pass, and what is said on the command line.
CASES = {
    "C1": ({}, {"task_acks_late": False}, {}),
    "C2": ({"task_acks_late": False}, {}, {}),
    "C3": ({"task_reject_on_worker_lost": False, "task_retry_on_worker_lost": False}, {}, {}),
    "C4": ({"task_retry_on_worker_lost": False}, {}, {}),
    "C5": ({"worker_cancel_long_running_tasks_on_connection_loss": False}, {}, {}),
    "C6": ({"worker_prefetch_multiplier": 4}, {}, {}),
    "C7": (
        {"task": {"autoretry_for": (OSError,), "retry_backoff": True, "retry_backoff_max": 7200}},
        {"task": {"autoretry_for": (OSError,), "default_retry_delay": 60}},
        {},
    ),
    "C8": ({"task_time_limit": None, "task_soft_time_limit": None}, {}, {}),
    "C9": ({"task": {"acks_on_timeout": False}}, {}, {}),
    "C10": ({"worker_soft_shutdown_timeout": 40}, {}, {"grace_period": 30}),
    "C12": (
        {"worker_deduplicate_successful_tasks": True, "backend": "rpc://"},
        {"worker_deduplicate_successful_tasks": True, "backend": "redis://127.0.0.1:1/1"},
        {},
    ),
    "C15": ({"broker_connection_max_retries": 100}, {}, {}),
    "C17": ({"worker_pool": "gevent"}, {}, {}),
    "R1": ({"options": {"visibility_timeout": 300}}, {"options": {"visibility_timeout": 900}}, {}),
    "R2": (
        {"backend": "redis://127.0.0.1:1/1", **LATE},
        {
            "backend": "redis://127.0.0.1:1/1",
            "result_backend_transport_options": {"visibility_timeout": 7200},
            **LATE,
        },
        {},
    ),
    "R4": ({"options": {"visibility_timeout": 14_400}}, {}, {}),
    "R10": ({"options": {"socket_timeout": None}}, {}, {}),
    "R11": ({"options": {"socket_keepalive": False}}, {}, {}),
    "R12": ({"options": {"health_check_interval": 0}}, {}, {}),
    "Q5": ({"broker": RABBIT, "options": {"confirm_publish": False}}, {"broker": RABBIT}, {}),
    "Q8": ({"broker": RABBIT, "broker_heartbeat": 0}, {"broker": RABBIT}, {}),
    "G1": (SINGLETON, {**SINGLETON, "task_acks_late": False}, {}),
    "G2": (SINGLETON, {**SINGLETON, "singleton_lock_expiry": 3600}, {}),
    "G3": (
        {**ONCE, "task": {"once": {"timeout": 60}}},
        {**ONCE, "task": {"once": {"timeout": 3600}}},
        {},
    ),
}
# Those whose bad state is one of the command line or of the machine.
OTHERS = ("C14", "C18", "R3", "L1", "L2")


@pytest.mark.parametrize("check_id", CASES)
def test_a_real_application_is_told_from_a_bad_one(check_id):
    """The check reads what Celery has in effect, of settings and of the options of a task."""
    bad, good, declared = CASES[check_id]
    is_problem(check_id, of_app(celery(**bad)), **declared)
    is_fine(check_id, of_app(celery(**good)), **declared)


# Those whose fix is more than settings: another decorator, another command, or a place that only you know.
NOT_SETTINGS = {"C1", "C2", "C9", "C12", "C17", "R4", "G1", "G3"}


@pytest.mark.parametrize("check_id", sorted(CASES.keys() - NOT_SETTINGS))
def test_pasting_the_fix_makes_the_problem_go_away(check_id):
    """The lines of the report are run as they are, on the application that they are for."""
    bad, _, declared = CASES[check_id]
    facts = gather.assembled(of_app(celery(**bad)), Declared(**declared))
    [finding] = [each for each in catalogue.examine(facts).of(FindingState.PROBLEM) if each.id == check_id]
    mended = celery(**bad)
    lines = [line for line in finding.fix.splitlines() if line.startswith(("app.conf.", "#"))]
    exec("\n".join(lines), {"app": mended})
    is_fine(check_id, of_app(mended), **declared)


def test_a_guarded_task_is_known_by_its_class(tmp_path):
    """What would hurt is harmless, for the run is in the database."""
    app = celery(task_acks_late=False, worker_cancel_long_running_tasks_on_connection_loss=False)
    app.tasks.unregister("shop.build")
    guard = Guard(app, database=f"sqlite:///{tmp_path}/shop.db")

    @guard.task("report:{number}", name="shop.report")
    def report(number):
        return number

    for check_id in ("C1", "C5"):
        is_harmless(check_id, of_app(app))
    is_fine("C2", of_app(app))


def test_tasks_of_holdfast_belong_to_its_own_application_alone(tmp_path, monkeypatch):
    """An application that is examined together with an installation does not get the tasks of its workers."""
    monkeypatch.setenv("HOLDFAST_DATA_DIR", str(tmp_path))
    [own] = examination.facts(settings.load(), offline=True).apps
    assert {task.name for task in own.tasks} == {"holdfast.wake", "holdfast.deliver"}
    [other] = of_app(celery()).apps
    assert {task.name for task in other.tasks} == {"shop.build"}


def test_a_liveness_probe_is_what_a_person_says_it_is():
    """`inspect ping` alone is green for a worker that consumes nothing."""
    app = of_app(celery())
    is_problem("C14", app, liveness="celery -A shop inspect ping -d celery@$HOSTNAME")
    is_fine("C14", app, liveness="python -m shop.progress --within 60")


def test_two_applications_in_one_database_of_redis_are_seen():
    """The broker of both is the same; with a number of its own each is fine."""
    is_problem("R3", of_app(celery(), celery()))
    is_fine("R3", of_app(celery(), celery("redis://127.0.0.1:1/1")))


def test_processes_of_celery_on_this_machine_are_seen(tmp_path):
    """Two real processes whose command line is `celery … beat`, and one worker with a pool."""
    program = tmp_path / "celery"
    program.write_text("import sys; print('up', flush=True); sys.stdin.read()")
    commands = [
        ["-A", "shop", "beat"],
        ["-A", "shop", "beat", "-s", "x"],
        ["-A", "shop", "worker", "-P", "gevent"],
    ]
    running = [
        subprocess.Popen([sys.executable, program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for words in commands
    ]
    seen = tmp_path / "proc"
    seen.mkdir()
    try:
        for each in running:
            assert each.stdout.readline() == b"up\n"
            (seen / str(each.pid)).symlink_to(f"/proc/{each.pid}")
        known = machine.probe(proc=seen)
    finally:
        for each in running:
            each.communicate()
    assert (known.beats, known.pools) == (2, ("gevent",))
    is_problem("C18", of_app(celery(**BEAT)), beats=known.beats)
    is_fine("C18", of_app(celery(**BEAT)), beats=1)


SOURCE = """
import openai
from anthropic import AsyncAnthropic as Claude
from openai import OpenAI

eager = OpenAI(api_key="sk-hunter22")
quiet = openai.AsyncOpenAI(api_key="sk-hunter22", max_retries=0, timeout=20)
claude = Claude(max_retries=5, timeout=SETTINGS)
paid = OpenAI(http_client=Client(transport=guard.transport(httpx2)))
other = shop.OpenAI()
"""


def test_clients_of_providers_are_read_from_the_source(tmp_path, monkeypatch):
    """Retries and timeouts as written, or as the library has them; a namesake is no client."""
    file = tmp_path / "shop_clients.py"
    file.write_text(SOURCE)
    module = type(sys)("shop_clients")
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "shop_clients", module)
    known = {each.where: each for each in clients.probe(tmp_path)}
    read = {where: (each.call, each.max_retries, each.timeout) for where, each in known.items()}
    assert read == {
        "shop_clients.py:6": ("OpenAI", 2, 600.0),
        "shop_clients.py:7": ("AsyncOpenAI", 0, 20),
        "shop_clients.py:8": ("AsyncAnthropic", 5, None),
        "shop_clients.py:9": ("OpenAI", 2, 600.0),
    }
    assert known["shop_clients.py:9"].through_guard
    assert "hunter22" not in repr(known)


def test_a_live_client_is_examined_with_its_own_settings(tmp_path):
    """A client of the official library resends by default; one that was told not to does not."""
    import openai  # noqa: PLC0415 - takes a second to load

    app = of_app(celery())
    with openai.OpenAI(api_key="sk-hunter22", base_url="http://127.0.0.1:1/v1") as client:
        [known] = [each for each in clients.probe(tmp_path) if each.max_retries == client.max_retries]
        assert (known.library, known.max_retries, known.timeout) == ("openai", 2, 600.0)
        bad = app + type(app)(clients=(known,))
        is_problem("L1", bad)
        is_problem("L2", bad)
        with client.with_options(max_retries=0, timeout=20) as quiet:
            [known] = [each for each in clients.probe(tmp_path) if each.max_retries == 0]
            assert quiet.max_retries == 0
            is_fine("L1", app + type(app)(clients=(known,)))
            is_fine("L2", app + type(app)(clients=(known,)))


def test_the_lock_server_of_a_guard_at_enqueue_is_known():
    """Locks of celery-once and celery-singleton lie where their settings say."""
    for conf in (SINGLETON, ONCE):
        app = celery(**conf)
        assert celery_app.lock_url(app.conf, app.tasks.values()) == "redis://127.0.0.1:1/0"
