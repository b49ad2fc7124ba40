"""What several checks share: which tasks a condition concerns, how long they take, which release is older."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from holdfast.doctor import spans
from holdfast.doctor.facts import AppFacts, Declared, DoctorFacts, TaskFacts
from holdfast.doctor.findings import CheckOutcome, harmless, passed, problem

GUARDED = (
    "every task that this concerns is guarded by Holdfast: its run is stored in the database, a message that "
    "comes again is skipped, and one that is lost is sent again by the sweep"
)
OURS = (
    "a message of Holdfast's own workers is only a wake-up without content: the work is in the database, a "
    "message that comes again finds nothing to do, and one that is lost is replaced by the sweep"
)


def version(text: str | None) -> tuple[int, ...]:
    """The numbers of a version, for comparing; empty if there are none."""
    match = re.match(r"\d+(\.\d+)*", text or "")
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def older(text: str | None, *limit: int) -> bool:
    """True if the version is known and below the limit."""
    numbers = version(text)
    return bool(numbers) and numbers < limit


def matches(name: str, patterns: Sequence[str]) -> bool:
    """True if one of the patterns of the command line names the task."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def repeatable(declared: Declared, task: TaskFacts) -> bool:
    """A person said that the task may run twice."""
    return matches(task.name, declared.may_repeat)


def judged(app: AppFacts, affected: Sequence[TaskFacts], seen: str, fine: str, fix: str = "") -> CheckOutcome:
    """A problem if the condition concerns a task that is not guarded; harmless if all of them are."""
    if not affected:
        return passed(app.name, fine)
    if app.ours:
        return harmless(app.name, seen, OURS)
    plain = [task for task in affected if not task.guarded]
    if not plain:
        return harmless(app.name, f"{seen}, on {spans.tasks(len(affected))}", GUARDED)
    if not app.tasks:
        return problem(app.name, seen, fix)
    listed = f"{seen}, on {spans.tasks(len(plain))}: {spans.names([task.name for task in plain])}"
    spared = len(affected) - len(plain)
    if spared:
        listed += f" (harmless for {spans.tasks(spared)} that Holdfast guards)"
    return problem(app.name, listed, fix)


def whole(app: AppFacts, seen: str, fix: str = "") -> CheckOutcome:
    """A condition of the whole application: harmless if every one of its tasks is guarded."""
    if app.ours:
        return harmless(app.name, seen, OURS)
    return harmless(app.name, seen, GUARDED) if app.all_guarded else problem(app.name, seen, fix)


def limit_of(task: TaskFacts, declared: Declared) -> float | None:
    """The longest that the task can run: its time limit, or what a person said; None: without bound."""
    limits = [each for each in (task.time_limit, declared.longest_task) if each is not None]
    return min(limits) if limits else None


def longest(app: AppFacts, facts: DoctorFacts) -> float | None:
    """The longest that any task of the application can run; None: without bound."""
    limits = [limit_of(task, facts.declared) for task in app.examined]
    return (
        None if any(each is None for each in limits) else max((each or 0.0 for each in limits), default=0.0)
    )


def longest_held(app: AppFacts, task: TaskFacts, facts: DoctorFacts) -> float | None:
    """The longest that a message of the task can stay unacknowledged; None: without bound.

    A worker holds `prefetch_multiplier` messages per process. The last of them waits until those before it
    are done, and is itself acknowledged when it starts, or with late acknowledgement when it ends.
    """
    slowest, own = longest(app, facts), limit_of(task, facts.declared)
    ahead = app.prefetch_multiplier - 1
    if (task.acks_late and own is None) or (ahead != 0 and slowest is None) or ahead < 0:
        return None
    return ahead * (slowest or 0.0) + ((own or 0.0) if task.acks_late else 0.0)


def longest_delay(app: AppFacts, facts: DoctorFacts) -> float | None:
    """The longest eta, countdown or delay of a retry that is known; None: none is."""
    delays = [task.retry_delay for task in app.examined if task.retry_delay is not None]
    if facts.declared.longest_delay is not None:
        delays.append(facts.declared.longest_delay)
    return max(delays, default=None)


def pools(app: AppFacts, facts: DoctorFacts) -> tuple[str, ...]:
    """The pools that workers of the application use."""
    if facts.declared.pool is not None:
        return (facts.declared.pool,)
    return tuple(dict.fromkeys((*facts.machine.pools, app.pool))) if not app.ours else (app.pool,)


def rounded_up(seconds: float) -> int:
    """A value to paste: a fifth more, in whole minutes."""
    return int(-(-seconds * 1.2 // 60) * 60)
