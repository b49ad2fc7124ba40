"""What a check says of real applications and servers."""

from pathlib import Path

from celery import Celery

from holdfast.doctor import catalogue, gather
from holdfast.doctor.facts import Declared
from holdfast.doctor.findings import FindingState
from holdfast.doctor.gather import Gathered
from holdfast.doctor.probes import celery_app

# What every application here has in order, unless a test changes it. Its one task is not guarded.
IN_ORDER = {
    "broker_connection_max_retries": None,
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_retry_on_worker_lost": True,
    "task_time_limit": 600,
    "task_soft_time_limit": 540,
    "worker_prefetch_multiplier": 1,
    "worker_cancel_long_running_tasks_on_connection_loss": True,
    "worker_soft_shutdown_timeout": 20,
}
OPTIONS = {"socket_timeout": 30, "socket_keepalive": True, "confirm_publish": True}


def celery(
    broker="redis://:own-secret@127.0.0.1:1/0", *, backend=None, options=None, task=None, base=None, **conf
):
    """A Celery application with one task; `task` are options of its own."""
    app = Celery("shop", broker=broker, backend=backend, set_as_current=False)
    app.conf.update({**IN_ORDER, "broker_transport_options": {**OPTIONS, **(options or {})}, **conf})
    extra = {} if base is None else {"base": base}

    @app.task(name="shop.build", shared=False, **extra, **(task or {}))
    def build(number):
        return number

    return app


def states(check_id, gathered, **declared):
    """The states of a check over the facts, with those of this machine."""
    facts = gather.assembled(gathered, Declared(**declared))
    report = catalogue.examine(facts)
    return [(each.state, each.seen) for each in report.findings if each.id == check_id]


def of_app(*apps):
    """The facts about the applications alone."""
    return Gathered(tuple(celery_app.facts_of(app, f"shop{n}:app") for n, app in enumerate(apps)))


def is_problem(check_id, gathered, **declared):
    """The check finds its problem; and says what it has seen if not."""
    said = states(check_id, gathered, **declared)
    assert FindingState.PROBLEM in [state for state, _ in said], said


def is_fine(check_id, gathered, **declared):
    """The check passes."""
    said = states(check_id, gathered, **declared)
    assert {state for state, _ in said} == {FindingState.PASSED}, said


def is_harmless(check_id, gathered, **declared):
    """The condition holds, and does no harm."""
    said = states(check_id, gathered, **declared)
    assert {state for state, _ in said} == {FindingState.HARMLESS}, said


ROOT = Path(__file__).resolve().parents[2]
