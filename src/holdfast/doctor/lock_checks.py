"""Checks of libraries that lock tasks: celery-once, celery-singleton and celery-heimdall."""

from collections.abc import Iterator

from holdfast.doctor import judging, spans
from holdfast.doctor.facts import AppFacts, DoctorFacts, TaskFacts
from holdfast.doctor.findings import CheckArea, CheckOutcome, Severity, passed

area = CheckArea("Locks on tasks")


def _locked(facts: DoctorFacts) -> Iterator[tuple[AppFacts, list[TaskFacts]]]:
    """Applications that lock tasks, with those tasks; another outcome would only say that none does."""
    for app in facts.apps:
        locked = [task for task in app.tasks if task.lock is not None]
        if locked:
            yield app, locked


def _of(tasks: list[TaskFacts]) -> str:
    return ", ".join(sorted({task.lock or "" for task in tasks}))


@area.check(
    "G1",
    Severity.ERROR,
    title="The lock is taken where no redelivery passes",
    why="celery-once, celery-singleton and celery-heimdall lock when a task is sent. A message that the "
    "broker delivers again was sent long ago: it passes no lock, and runs beside the first.",
    fix='from holdfast import Guard\nguard = Guard(app)\n\n@guard.task("report:{report_id}")   # was '
    "@app.task(base=Singleton)\ndef build(report_id): ...",
    evidence=(
        "measured: a 20 s task, visibility timeout 5 s, one call: 4 executions with each of the three",
        "docs/how-to/move-from-celery-once.md",
    ),
)
def lock_at_enqueue(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Locks with late acknowledgement."""
    for app, locked in _locked(facts):
        affected = [task for task in locked if task.acks_late]
        yield judging.judged(
            app, affected, f"{_of(affected)} with acks_late", "no task with a lock is acknowledged late"
        )


@area.check(
    "G2",
    Severity.ERROR,
    title="A lock that never ends",
    why="A worker that is killed does not release its lock. Without an expiry the task can never be sent "
    "again, until somebody deletes the key by hand.",
    fix="app.conf.singleton_lock_expiry = 3600  # above the time limit of the task",
    evidence=("https://github.com/steinitzu/celery-singleton#app-configuration",),
)
def lock_for_ever(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Locks without an expiry."""
    for app, locked in _locked(facts):
        affected = [task for task in locked if task.lock_expiry is None]
        yield judging.judged(app, affected, f"{_of(affected)} without an expiry", "every lock ends by itself")


@area.check(
    "G3",
    Severity.ERROR,
    title="The lock ends before the task",
    why="A second copy is admitted while the first one still runs.",
    fix="app.conf.singleton_lock_expiry = 3600  # above the time limit; celery-once: once={'timeout': 3600}",
    evidence=("https://github.com/cameronmaske/celery-once#timeout",),
)
def lock_too_short(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Locks that end before the time limit, or while no limit ends the task."""
    for app, locked in _locked(facts):
        timed = [
            (task, judging.limit_of(task, facts.declared)) for task in locked if task.lock_expiry is not None
        ]
        affected = [task for task, limit in timed if limit is None or (task.lock_expiry or 0.0) < limit]
        shortest = min((task.lock_expiry or 0.0 for task in affected), default=0.0)
        if not timed:
            yield passed(app.name, "no lock has an expiry")
            continue
        yield judging.judged(
            app,
            affected,
            f"a lock of {spans.span(shortest)} on a task that may take longer",
            "every lock outlives the time limit of its task",
        )
