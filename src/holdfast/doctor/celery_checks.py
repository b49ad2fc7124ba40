"""Checks of a Celery application on any broker: acknowledgement, limits, prefetching, restarts."""

from collections.abc import Iterator

from holdfast.doctor import judging, spans
from holdfast.doctor.facts import DoctorFacts
from holdfast.doctor.findings import CheckArea, CheckOutcome, Severity, harmless, passed, problem, unknown

area = CheckArea("Celery, on any broker")

DOCS = "https://docs.celeryq.dev/en/stable/userguide"
GUARD_IT = """\
from holdfast import Guard          # pip install "holdfast[celery]"
guard = Guard(app)

@guard.task("report:{report_id}")   # was @app.task
def build(report_id): ..."""
GREEN = frozenset({"gevent", "eventlet"})


@area.check(
    "C1",
    Severity.ERROR,
    title="Late acknowledgement without a guard",
    why="The message is acknowledged when the task ends. If the connection is lost before, the broker "
    "delivers it again, and the task runs a second time beside the first: what it pays for is paid twice.",
    fix=f"{GUARD_IT}\n# or, if running twice does no harm: holdfast doctor --may-repeat 'NAME'",
    evidence=(f"{DOCS}/tasks.html#Task.acks_late", "celery#6760"),
)
def late_without_guard(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Every task that is acknowledged late, is not guarded and may not run twice."""
    for app in facts.apps:
        affected = [
            task for task in app.examined if task.acks_late and not judging.repeatable(facts.declared, task)
        ]
        yield judging.judged(app, affected, "acks_late is on", "no task is acknowledged late without a guard")


@area.check(
    "C2",
    Severity.ERROR,
    title="Early acknowledgement loses work",
    why="The message is acknowledged before the task runs. A worker that is killed, evicted or redeployed "
    "meanwhile takes the task with it, and nobody is told.",
    fix="# a task that may run twice:\n@app.task(acks_late=True, reject_on_worker_lost=True)\n"
    f"# a task that may not:\n{GUARD_IT}\n"
    "# or, if its loss does no harm: holdfast doctor --may-be-lost 'NAME'",
    evidence=(f"{DOCS}/tasks.html#Task.acks_late", f"{DOCS}/configuration.html#task-acks-late"),
)
def early(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Every task that is acknowledged before it runs and may not be lost."""
    for app in facts.apps:
        affected = [
            task
            for task in app.examined
            if not task.acks_late and not judging.matches(task.name, facts.declared.may_be_lost)
        ]
        yield judging.judged(app, affected, "acks_late is off", "no task is acknowledged before it runs")


@area.check(
    "C3",
    Severity.ERROR,
    title="A killed process counts as a failed task",
    why="With late acknowledgement alone, a pool process that is killed (out of memory, a segmentation "
    "fault) has its message acknowledged as failed: the task is lost although late acknowledgement was meant "
    "to keep it.",
    fix="app.conf.task_reject_on_worker_lost = True  # or, with Celery 5.7: task_retry_on_worker_lost = True",
    evidence=(f"{DOCS}/configuration.html#task-reject-on-worker-lost", "celery#5598"),
)
def worker_lost(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Tasks that are acknowledged late and not requeued when their process dies."""
    for app in facts.apps:
        if not {"prefork", "processes"} & set(judging.pools(app, facts)):
            yield passed(app.name, "the pool has no processes that could be killed one by one")
            continue
        affected = [
            task
            for task in app.examined
            if task.acks_late and not (task.reject_on_worker_lost or task.retry_on_worker_lost)
        ]
        yield judging.judged(
            app, affected, "acks_late without reject_on_worker_lost", "a killed process gives its task back"
        )


@area.check(
    "C4",
    Severity.ERROR,
    title="A task that kills its process runs for ever",
    why="A task that exceeds the memory limit is requeued, kills the next process, and is requeued again: "
    "nothing counts the deliveries, and each round is paid for.",
    fix="app.conf.task_retry_on_worker_lost = True  # Celery 5.7: counts, and gives up after max_retries\n"
    "# or, on RabbitMQ, quorum queues with x-delivery-limit and a dead-letter exchange",
    evidence=(
        "celery#9082",
        "OasisLMF/OasisPlatform#975",
        f"{DOCS}/configuration.html#task-reject-on-worker-lost",
    ),
)
def poison(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Tasks that are requeued without bound when their process dies."""
    for app in facts.apps:
        capped = any(queue.type == "quorum" for queue in app.queues)
        affected = [
            task
            for task in app.examined
            if task.acks_late and task.reject_on_worker_lost and not task.retry_on_worker_lost and not capped
        ]
        outcome = judging.judged(
            app,
            affected,
            "reject_on_worker_lost without a bound on deliveries",
            "deliveries after a killed process are bounded",
        )
        if outcome.harmless and not app.ours:
            outcome = harmless(
                outcome.about,
                outcome.seen,
                "Holdfast counts the deaths of processes that ran a guarded task, and fails the run after "
                "three without progress",
            )
        yield outcome


@area.check(
    "C5",
    Severity.ERROR,
    title="Tasks continue after their connection was lost",
    why="With late acknowledgement, the broker delivers the message of a lost connection again at once. The "
    "first execution, which is not cancelled, continues: both run side by side.",
    fix="app.conf.worker_cancel_long_running_tasks_on_connection_loss = True",
    evidence=(f"{DOCS}/configuration.html#worker-cancel-long-running-tasks-on-connection-loss",),
)
def not_cancelled(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Late acknowledgement while executions survive the loss of their connection."""
    for app in facts.apps:
        if app.cancels_on_connection_loss:
            yield passed(app.name, "tasks are cancelled when the connection is lost")
            continue
        affected = [
            task for task in app.examined if task.acks_late and not judging.repeatable(facts.declared, task)
        ]
        yield judging.judged(
            app,
            affected,
            "worker_cancel_long_running_tasks_on_connection_loss is off, with acks_late",
            "no task is acknowledged late",
        )


@area.check(
    "C6",
    Severity.WARNING,
    title="Messages wait in a busy worker",
    why="A worker takes several messages per process ahead. Behind a long task they wait although other "
    "workers are idle, and their time until redelivery runs.",
    fix="app.conf.worker_prefetch_multiplier = 1",
    evidence=(f"{DOCS}/optimizing.html#prefetch-limits",),
)
def prefetching(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """More than one message per process is taken ahead, and a task may take a minute or more."""
    for app in facts.apps:
        slowest = judging.longest(app, facts)
        if app.prefetch_multiplier == 1:
            yield passed(app.name, "a worker takes one message per process")
        elif slowest is not None and slowest < 60:
            yield passed(app.name, f"no task takes longer than {spans.span(slowest)}")
        else:
            taken = (
                "without limit" if app.prefetch_multiplier == 0 else f"{app.prefetch_multiplier} per process"
            )
            bound = "no time limit" if slowest is None else f"tasks of up to {spans.span(slowest)}"
            yield judging.whole(app, f"messages are prefetched {taken}, with {bound}")


@area.check(
    "C7",
    Severity.ERROR,
    title="A delay is longer than the broker waits",
    why="A worker holds a message with an eta, a countdown or the delay of a retry until it is due. If that "
    "is later than the broker's timeout, the message goes to the next worker as well, and the task runs once "
    "for each.",
    fix="# keep delays short, and let a schedule or a database say what is due; or\n"
    "app.conf.broker_transport_options |= {'visibility_timeout': SECONDS}  # above the longest delay",
    evidence=(
        "https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout",
        "celery#6760",
    ),
)
def delays(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The longest known delay against the timeout of the broker."""
    for app in facts.apps:
        limit = broker_timeout(app.broker.kind, facts, app.visibility)
        if app.broker.kind not in {"redis", "rabbitmq"} or limit is None:
            yield passed(app.name, "the broker has no timeout for unacknowledged messages")
            continue
        if app.broker.kind == "rabbitmq" and any(queue.type == "quorum" for queue in app.queues):
            yield passed(app.name, "delays are kept by RabbitMQ, not by a worker (native delayed delivery)")
            continue
        delay = judging.longest_delay(app, facts)
        if app.ours:
            yield passed(app.name, "Holdfast sends no message with a delay: the database knows what is due")
        elif delay is None:
            yield unknown(app.name, "the longest eta or countdown; tell it with --longest-delay SECONDS")
        elif delay < limit:
            yield passed(
                app.name, f"the longest known delay is {spans.span(delay)}, below {spans.span(limit)}"
            )
        else:
            fix = (
                f"app.conf.broker_transport_options |= {{'visibility_timeout': {judging.rounded_up(delay)}}}"
            )
            seen = f"a delay of {spans.span(delay)}, and the broker waits {spans.span(limit)}"
            yield judging.whole(app, seen, fix if app.broker.kind == "redis" else "")


def broker_timeout(kind: str, facts: DoctorFacts, visibility: float) -> float | None:
    """Seconds after which the broker delivers an unacknowledged message again; None: never."""
    if kind == "redis":
        return visibility
    if facts.declared.consumer_timeout is not None:
        return facts.declared.consumer_timeout or None
    for server in facts.rabbitmq:
        if server.consumer_timeout is not None:
            return server.consumer_timeout or None
        if judging.older(server.version, 3, 8, 15):
            return None
        if judging.older(server.version, 3, 8, 17):
            return 900.0
    return 1800.0


@area.check(
    "C8",
    Severity.ERROR,
    title="Nothing ends a task before its message comes again",
    why="Once a message was unacknowledged for the visibility timeout, Redis gives it to another worker, "
    "finished or not. Only a time limit that ends sooner, with the time that a message waits in the worker, "
    "keeps two executions from overlapping.",
    fix="app.conf.task_time_limit = 1500\napp.conf.task_soft_time_limit = 1440\n"
    "app.conf.worker_prefetch_multiplier = 1",
    evidence=(
        f"{DOCS}/configuration.html#task-time-limit",
        "https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html#visibility-timeout",
    ),
)
def time_limits(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Tasks without a time limit, and those whose message can be held for longer than Redis waits."""
    for app in facts.apps:
        if app.broker.kind not in {"redis", "rabbitmq"}:
            yield passed(app.name, "the broker has no timeout for unacknowledged messages")
            continue
        endless = [task for task in app.examined if judging.limit_of(task, facts.declared) is None]
        if endless or app.broker.kind == "rabbitmq":
            waits = broker_timeout(app.broker.kind, facts, app.visibility) or 3600.0
            limit = int(min(1500.0, waits * 0.8))
            fix = (
                f"app.conf.task_time_limit = {limit}\napp.conf.task_soft_time_limit = {int(limit * 0.95)}\n"
                "app.conf.worker_prefetch_multiplier = 1"
            )
            yield judging.judged(app, endless, "no time limit", "every task has a time limit", fix)
            continue
        held = {task: judging.longest_held(app, task, facts) for task in app.examined}
        over = [task for task, time in held.items() if time is None or time >= app.visibility]
        known = [time for time in held.values() if time is not None]
        worst = max(known, default=0.0)
        fix = (
            "app.conf.worker_prefetch_multiplier = 1\n"
            f"app.conf.broker_transport_options |= {{'visibility_timeout': {judging.rounded_up(worst)}}}"
        )
        yield judging.judged(
            app,
            over,
            f"a message can be held for {spans.span(worst)} (prefetch_multiplier "
            f"{app.prefetch_multiplier}), and the visibility timeout is {spans.span(app.visibility)}",
            f"no message is held for longer than {spans.span(worst)} of {spans.span(app.visibility)}",
            fix,
        )


@area.check(
    "C9",
    Severity.WARNING,
    title="A task that exceeds its time limit is requeued",
    why="The task that took too long is delivered again, takes too long again, and so on.",
    fix="app.conf.task_acks_on_timeout = True  # before Celery 5.7: task_acks_on_failure_or_timeout = True",
    evidence=(f"{DOCS}/configuration.html#task-acks-on-failure-or-timeout",),
)
def requeued_on_timeout(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Late acknowledgement with requeueing at the time limit."""
    for app in facts.apps:
        affected = [task for task in app.examined if task.acks_late and not task.acks_on_timeout]
        yield judging.judged(
            app, affected, "acks_on_timeout is off", "a task that exceeds its time limit is acknowledged"
        )


@area.check(
    "C10",
    Severity.WARNING,
    title="A deploy kills tasks in the middle of a call",
    why="At SIGTERM a worker waits for its tasks, and the orchestrator kills it when the grace period ends. "
    "Without a soft shutdown that ends sooner, whatever is in flight is cut: paid, and its result lost.",
    fix="app.conf.worker_soft_shutdown_timeout = 20  # Celery 5.5 or newer; below the grace period\n"
    "# and give it time: terminationGracePeriodSeconds, stop_grace_period or TimeoutStopSec",
    evidence=(
        f"{DOCS}/workers.html#soft-shutdown",
        f"{DOCS}/configuration.html#worker-soft-shutdown-timeout",
    ),
)
def grace(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The soft shutdown against the grace period; for Holdfast's own workers their drain."""
    period = facts.declared.grace_period
    for app in facts.apps:
        if app.ours:
            continue
        timeout = app.soft_shutdown_timeout
        if not timeout:
            yield judging.whole(app, "worker_soft_shutdown_timeout is 0: there is no soft shutdown")
        elif period is None:
            yield unknown(
                app.name, "the grace period of the orchestrator; tell it with --grace-period SECONDS"
            )
        elif timeout >= period:
            seen = f"a soft shutdown of {spans.span(timeout)} in a grace period of {spans.span(period)}"
            fix = f"app.conf.worker_soft_shutdown_timeout = {max(1, int(period * 0.7))}"
            yield judging.whole(app, seen, fix)
        else:
            yield passed(app.name, f"a soft shutdown of {spans.span(timeout)} within {spans.span(period)}")
    if facts.installation is not None:
        drain, deadline = facts.installation.drain_timeout, facts.installation.order_deadline
        needed = drain + deadline
        if period is None:
            yield unknown("Holdfast workers", "the grace period; tell it with --grace-period SECONDS")
        elif period < needed:
            yield problem(
                "Holdfast workers",
                f"workers drain for {spans.span(drain)} and then wait for orders in flight, each for up to "
                f"{spans.span(deadline)}; the grace period is {spans.span(period)}",
                f"terminationGracePeriodSeconds: {int(needed) + 5}   # or stop_grace_period, TimeoutStopSec",
            )
        else:
            yield passed("Holdfast workers", f"a drain of {spans.span(needed)} within {spans.span(period)}")


@area.check(
    "C12",
    Severity.WARNING,
    title="Deduplication of finished tasks does nothing",
    why="worker_deduplicate_successful_tasks looks the result of a redelivered task up. Where results are "
    "ignored, sent back to the caller, or expire before the message comes again, there is nothing to find, "
    "and the task runs again without a word.",
    fix="app.conf.result_backend = 'redis://HOST:PORT/1'  # or a database; not rpc://\n"
    "app.conf.task_ignore_result = False\n"
    "app.conf.result_expires = 86400  # longer than the visibility timeout",
    evidence=(f"{DOCS}/configuration.html#worker-deduplicate-successful-tasks",),
)
def inert_deduplication(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Deduplication is on, and results cannot be looked up."""
    for app in facts.apps:
        if not app.deduplicates_successful:
            yield passed(app.name, "deduplication is not relied on")
            continue
        backend = app.result_backend
        ignored = [task for task in app.examined if task.ignore_result and not task.guarded]
        if backend is None or backend.kind in {"rpc", "none", "disabled"}:
            yield problem(app.name, "results cannot be looked up: the result backend is rpc:// or none")
        elif ignored:
            yield judging.judged(app, ignored, "results are ignored", "")
        elif app.result_expires and app.result_expires <= app.visibility and app.broker.kind == "redis":
            yield problem(
                app.name,
                f"results expire after {spans.span(app.result_expires)}, and a message can come again after "
                f"{spans.span(app.visibility)}",
            )
        else:
            yield passed(app.name, "results are stored for longer than a message can come again")


@area.check(
    "C13",
    Severity.ERROR,
    title="A worker that is connected and consumes nothing",
    why="Before 5.7, a worker that reconnects to Redis can end up connected and subscribed to nothing: the "
    "queue grows, and `inspect ping` stays green until somebody restarts it.",
    fix='pip install "celery>=5.7" "kombu>=5.7"',
    evidence=("celery#8030", "celery#8091", "kombu#2492", "airflow#63580"),
)
def silent_worker(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Redis with a release of Celery or kombu before 5.7."""
    releases = {name: facts.versions.get(name) for name in ("celery", "kombu")}
    for app in facts.apps:
        if app.broker.kind != "redis":
            yield passed(app.name, "the broker is not Redis")
            continue
        if not all(releases.values()):
            yield unknown(app.name, "the releases of celery and kombu")
            continue
        old = [f"{name} {release}" for name, release in releases.items() if judging.older(release, 5, 7)]
        if old:
            yield problem(app.name, f"{' and '.join(old)} on Redis")
        else:
            yield passed(app.name, f"celery {releases['celery']} and kombu {releases['kombu']}")


@area.check(
    "C14",
    Severity.ERROR,
    title="The liveness probe asks only whether a worker answers",
    why="`inspect ping` is answered by the worker's control queue. A worker that consumes nothing (C13) or "
    "whose tasks all hang answers it as well, so nothing restarts it.",
    fix="# probe progress: a task that stores a timestamp every minute, and a probe that checks its age.\n"
    "# Holdfast's workers serve /healthz, which fails when they make no progress: --health-port",
    evidence=("airflow#63580", "celery#8030"),
)
def liveness(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The liveness probe of the command line."""
    for app in facts.apps:
        command = facts.declared.liveness
        if app.ours:
            yield passed(app.name, "the health port of a worker proves progress")
        elif command is None:
            yield unknown(app.name, "the liveness probe of your workers; tell it with --liveness COMMAND")
        elif "ping" in command or " status" in f" {command}":
            yield problem(app.name, f"the probe is `{command}`")
        else:
            yield passed(app.name, f"the probe is `{command}`")


@area.check(
    "C15",
    Severity.WARNING,
    title="A worker gives up on its broker",
    why="After so many failed connections the worker ends. If nothing starts it again, the outage of a "
    "broker becomes an outage of the application.",
    fix="app.conf.broker_connection_max_retries = None\n"
    "# or, if something restarts workers: holdfast doctor --supervised",
    evidence=(f"{DOCS}/configuration.html#broker-connection-max-retries",),
)
def gives_up(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """A bound on connection attempts, and nobody said that workers are restarted."""
    for app in facts.apps:
        if app.connection_max_retries is None:
            yield passed(app.name, "the worker never gives up on its broker")
        elif facts.declared.supervised:
            yield passed(app.name, "workers that end are started again")
        else:
            yield problem(app.name, f"broker_connection_max_retries is {app.connection_max_retries:g}")


@area.check(
    "C17",
    Severity.WARNING,
    title="Unacknowledged messages may never come back",
    why="With gevent or eventlet on Redis, the restoring of messages that a dead worker held may never run.",
    fix="celery -A APP worker --pool prefork   # or threads",
    evidence=("celery#4976",),
)
def green_pools(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """A green pool on Redis with late acknowledgement."""
    for app in facts.apps:
        used = GREEN & set(judging.pools(app, facts))
        if app.broker.kind != "redis" or not used:
            yield passed(app.name, f"the pool is {', '.join(judging.pools(app, facts))}")
            continue
        affected = [task for task in app.examined if task.acks_late]
        yield judging.judged(
            app,
            affected,
            f"the pool is {', '.join(used)}, on Redis, with acks_late",
            "no task is acknowledged late",
        )


@area.check(
    "C18",
    Severity.WARNING,
    title="More than one scheduler",
    why="Every `celery beat` sends every entry of the schedule: with two, each periodic task runs twice.",
    fix="# one replica of `celery beat`, with strategy Recreate; or a scheduler that locks:\n"
    "app.conf.beat_scheduler = 'redbeat.RedBeatScheduler'",
    evidence=(f"{DOCS}/periodic-tasks.html#starting-the-scheduler",),
)
def schedulers(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Several processes of beat, by the command line or on this machine."""
    for app in facts.apps:
        number = facts.declared.beats if facts.declared.beats is not None else facts.machine.beats
        if app.ours:
            yield passed(app.name, "Holdfast uses no celery beat")
        elif "redbeat" in app.beat_scheduler.lower():
            yield passed(app.name, "the scheduler holds a lock")
        elif not app.beat_entries:
            yield passed(app.name, "there is no schedule")
        elif number is None:
            yield unknown(app.name, "how many celery beat run; tell it with --beats NUMBER")
        elif number > 1:
            yield problem(app.name, f"{number} celery beat for {app.beat_entries} periodic tasks")
        else:
            yield passed(app.name, f"{number} celery beat on this machine")
