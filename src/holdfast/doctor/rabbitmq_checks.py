"""Checks of applications on RabbitMQ, and of the brokers that they use."""

from collections.abc import Iterator, Sequence

from holdfast.doctor import judging, spans
from holdfast.doctor.celery_checks import broker_timeout
from holdfast.doctor.facts import AppFacts, DoctorFacts, QueueFacts, RabbitFacts, TaskFacts
from holdfast.doctor.findings import CheckArea, CheckOutcome, Severity, passed, problem, unknown

area = CheckArea("RabbitMQ")

DOCS = "https://www.rabbitmq.com/docs"
CELERY_DOCS = "https://docs.celeryq.dev/en/stable/userguide"
QUORUM_DOCS = "https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/rabbitmq.html"
# Queues that Celery makes for itself, where nothing is lost that matters.
INTERNAL = (".pidbox", "celeryev", "celery_delayed_", "amq.gen", "reply.")


def _on_rabbit(facts: DoctorFacts) -> Iterator[tuple[AppFacts, RabbitFacts | None]]:
    """Every application on RabbitMQ, with what is known of its virtual host."""
    for app in facts.apps:
        if app.broker.kind == "rabbitmq":
            same = [each for each in facts.rabbitmq if each.endpoint.server == app.broker.server]
            yield app, next((each for each in same if each.endpoint.name == app.broker.name), None)


def _queues(app: AppFacts, server: RabbitFacts | None) -> tuple[QueueFacts, ...]:
    """The queues of tasks: as the broker has them, otherwise as the application declares them."""
    listed: Sequence[QueueFacts] = app.queues
    if server is not None and server.queues is not None:
        declared = {queue.name for queue in app.queues}
        listed = [queue for queue in server.queues if queue.name in declared] or (
            [] if app.ours else server.queues
        )
    return tuple(
        queue for queue in listed if not queue.exclusive and not any(word in queue.name for word in INTERNAL)
    )


def _over(app: AppFacts, facts: DoctorFacts, limit: float) -> list[TaskFacts]:
    """The tasks whose message can be unacknowledged for that long."""
    over = []
    for task in app.examined:
        held = judging.longest_held(app, task, facts)
        if held is None or held >= limit:
            over.append(task)
    return over


def _condition(app: AppFacts, facts: DoctorFacts, limit: float) -> tuple[list[TaskFacts], str]:
    over = _over(app, facts, limit)
    known = [judging.longest_held(app, task, facts) for task in over]
    worst = None if None in known else max((each or 0.0 for each in known), default=0.0)
    holds = "without bound" if worst is None else f"for {spans.span(worst)}"
    return over, f"a message can be unacknowledged {holds}, and consumer_timeout is {spans.span(limit)}"


@area.check(
    "Q1",
    Severity.ERROR,
    title="A task is longer than RabbitMQ waits",
    why="When a message stays unacknowledged for consumer_timeout (30 minutes by default, 15 in 3.8.15 and "
    "3.8.16), RabbitMQ closes the channel with 406 PRECONDITION_FAILED, and everything in flight on it is "
    "delivered again.",
    fix="# rabbitmq.conf: consumer_timeout = 7200000        (milliseconds)\n"
    "app.conf.worker_prefetch_multiplier = 1\napp.conf.task_time_limit = 1500  # below consumer_timeout",
    evidence=("celery#6760", f"{DOCS}/consumers#acknowledgement-timeout"),
)
def consumer_timeout(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The longest that a message is held against the timeout of the broker."""
    for app, server in _on_rabbit(facts):
        limit = broker_timeout("rabbitmq", facts, app.visibility)
        queues = _queues(app, server)
        release = server.version if server is not None else None
        if limit is None:
            yield passed(app.name, "the broker has no consumer timeout")
            continue
        only_classic = bool(queues) and all(queue.type == "classic" for queue in queues)
        if judging.version(release) >= (4, 3) and only_classic:
            yield passed(app.name, "from 4.3 on, the timeout is not applied to classic queues")
            continue
        over, seen = _condition(app, facts, limit)
        late = [task for task in over if task.acks_late]
        yield judging.judged(app, late, seen, f"no message is held for {spans.span(limit)}")


@area.check(
    "Q2",
    Severity.ERROR,
    title="Reruns without bound after a consumer timeout",
    why="From RabbitMQ 4.3 on, a delivery that ended by the consumer timeout of a quorum queue does not "
    "count toward the delivery limit: a task that is too long is delivered for ever.",
    fix="app.conf.task_time_limit = 1500  # below consumer_timeout\napp.conf.worker_prefetch_multiplier = 1",
    evidence=("https://github.com/rabbitmq/rabbitmq-server/releases/tag/v4.3.0",),
)
def endless_timeouts(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """RabbitMQ 4.3 or newer, a quorum queue, and a message that is held for too long."""
    for app, server in _on_rabbit(facts):
        if server is None or server.version is None:
            yield unknown(app.name, "the release of RabbitMQ")
            continue
        limit = broker_timeout("rabbitmq", facts, app.visibility)
        quorum = [queue.name for queue in _queues(app, server) if queue.type == "quorum"]
        if judging.version(server.version) < (4, 3) or not quorum or limit is None:
            yield passed(app.name, f"RabbitMQ {server.version}, {len(quorum)} quorum queues")
            continue
        over, seen = _condition(app, facts, limit)
        late = [task for task in over if task.acks_late]
        yield judging.judged(
            app, late, f"RabbitMQ {server.version}, quorum queues, {seen}", "no message is held for so long"
        )


@area.check(
    "Q3",
    Severity.ERROR,
    title="Messages are dropped after too many deliveries",
    why="A quorum queue drops a message that was delivered more often than its limit (20 by default since "
    "RabbitMQ 4.0). Without a dead-letter exchange it is gone.",
    fix="rabbitmqctl set_policy dead-letters '^celery' '{\"dead-letter-exchange\": \"dead\"}' --apply-to "
    "quorum_queues",
    evidence=(f"{DOCS}/quorum-queues#poison-message-handling", f"{DOCS}/dlx"),
)
def dropped(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Quorum queues with a delivery limit and nowhere to go."""
    for app, server in _on_rabbit(facts):
        release = judging.version(server.version if server is not None else None)
        names = []
        for queue in _queues(app, server):
            limit = queue.arguments.get("x-delivery-limit", 20 if release >= (4, 0) else None)
            limited = limit is not None and limit != -1
            if queue.type == "quorum" and limited and not queue.dead_letters:
                names.append(f"{queue.name} (after {limit})")
        if names:
            yield judging.whole(app, f"dropped without a dead-letter exchange: {spans.names(names)}")
        elif not release:
            yield unknown(app.name, "the release of RabbitMQ")
        else:
            yield passed(app.name, "no queue drops messages silently")


@area.check(
    "Q5",
    Severity.ERROR,
    title="Published messages are not confirmed",
    why="Without publisher confirms, apply_async returns although the broker may never have stored the "
    "message: a connection that breaks right then loses the task.",
    fix="app.conf.broker_transport_options |= {'confirm_publish': True}",
    evidence=(f"{DOCS}/confirms", f"{CELERY_DOCS}/configuration.html#broker-transport-options"),
)
def confirms(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Publisher confirms are off."""
    for app, _ in _on_rabbit(facts):
        if app.confirms_publish:
            yield passed(app.name, "confirm_publish is on")
        else:
            yield judging.whole(app, "confirm_publish is off")


@area.check(
    "Q6",
    Severity.ERROR,
    title="Queues do not survive a restart",
    why="Transient messages, and queues that are not durable or delete themselves, are lost when the broker "
    "restarts or the last worker disconnects.",
    fix="app.conf.task_default_delivery_mode = 'persistent'\n"
    "app.conf.task_queues = [Queue('celery', durable=True, auto_delete=False)]  # delete the old queue first",
    evidence=(f"{DOCS}/queues#durability", f"{CELERY_DOCS}/configuration.html#task-default-delivery-mode"),
)
def durability(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Transient delivery, and queues that are not durable or are deleted automatically."""
    for app, server in _on_rabbit(facts):
        weak = [
            f"{queue.name} ({'auto-delete' if queue.auto_delete else 'not durable'})"
            for queue in _queues(app, server)
            if queue.auto_delete or not queue.durable
        ]
        if app.delivery_mode == 1:
            weak.insert(0, "transient delivery")
        if weak:
            yield judging.whole(app, spans.names(weak))
        else:
            yield passed(app.name, "queues are durable and messages persistent")


@area.check(
    "Q7",
    Severity.WARNING,
    title="A full queue drops its oldest messages",
    why="A queue with x-max-length drops messages from its head when it is full; the senders notice nothing.",
    fix="x-overflow: reject-publish            # with confirm_publish, the sender then gets an error",
    evidence=(f"{DOCS}/maxlength",),
)
def max_length(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """A maximum length with drop-head."""
    for app, server in _on_rabbit(facts):
        full = [
            queue.name
            for queue in _queues(app, server)
            if {"x-max-length", "x-max-length-bytes"} & queue.arguments.keys()
            and queue.arguments.get("x-overflow", "drop-head") == "drop-head"
        ]
        if full:
            yield judging.whole(app, f"x-max-length with drop-head: {spans.names(full)}")
        else:
            yield passed(app.name, "no queue drops messages when it is full")


@area.check(
    "Q8",
    Severity.WARNING,
    title="Heartbeats are missed",
    why="Without heartbeats a dead connection is noticed late or never; with the solo pool the worker itself "
    "does the work and cannot send them, so the broker resets the connection in the middle of a task.",
    fix="app.conf.broker_heartbeat = 120\ncelery -A APP worker --pool prefork",
    evidence=(f"{DOCS}/heartbeats", f"{CELERY_DOCS}/configuration.html#broker-heartbeat"),
)
def heartbeats(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """No heartbeat, or a pool that cannot send one while it works."""
    for app, _ in _on_rabbit(facts):
        if not app.heartbeat:
            yield problem(app.name, "broker_heartbeat is 0")
        elif "solo" in judging.pools(app, facts):
            slowest = judging.longest(app, facts)
            takes = "without a time limit" if slowest is None else f"of up to {spans.span(slowest)}"
            if slowest is not None and slowest < app.heartbeat:
                yield passed(app.name, f"the pool is solo, with tasks {takes}")
            else:
                yield judging.whole(app, f"the pool is solo, with tasks {takes} and a heartbeat")
        else:
            yield passed(app.name, f"a heartbeat every {spans.span(app.heartbeat)}")


@area.check(
    "Q9",
    Severity.WARNING,
    title="Classic and quorum queues are mixed",
    why="Quorum queues refuse global prefetch limits. With quorum detection off, or with both types in one "
    "worker, channels fail, and tasks with an eta can block the queue.",
    fix="app.conf.task_default_queue_type = 'quorum'\napp.conf.worker_detect_quorum_queues = True",
    evidence=(
        f"{QUORUM_DOCS}#using-quorum-queues",
        f"{CELERY_DOCS}/configuration.html#worker-detect-quorum-queues",
    ),
)
def mixed_types(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Both types in one application, or quorum queues that are not detected."""
    for app, server in _on_rabbit(facts):
        types = {queue.type for queue in _queues(app, server)} & {"classic", "quorum"}
        if "quorum" in types and not app.detects_quorum_queues:
            yield problem(app.name, "quorum queues, and worker_detect_quorum_queues is off")
        elif len(types) > 1:
            yield problem(app.name, "queues of tasks are classic and quorum")
        else:
            yield passed(app.name, f"all queues of tasks are {next(iter(types), 'classic')}")


@area.check(
    "Q10",
    Severity.WARNING,
    title="The control queue is refused",
    why="RabbitMQ 4.3 refuses queues that are neither durable nor exclusive, as Celery before 5.7 declares "
    "for remote control and events.",
    fix='pip install "celery>=5.7" "kombu>=5.7"\n'
    "# or, in rabbitmq.conf: deprecated_features.permit.transient_nonexcl_queues = true",
    evidence=("https://github.com/rabbitmq/rabbitmq-server/releases/tag/v4.3.0",),
)
def control_queue(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """RabbitMQ 4.3 or newer with Celery before 5.7."""
    celery = facts.versions.get("celery")
    for app, server in _on_rabbit(facts):
        release = server.version if server is not None else None
        if not release or not celery:
            yield unknown(app.name, "the releases of RabbitMQ and celery")
        elif judging.version(release) >= (4, 3) and judging.older(celery, 5, 7):
            yield problem(app.name, f"RabbitMQ {release} with celery {celery}")
        else:
            yield passed(app.name, f"RabbitMQ {release} with celery {celery}")


@area.check(
    "Q12",
    Severity.WARNING,
    title="RabbitMQ blocks publishers",
    why="While its memory or disk alarm is on, RabbitMQ reads nothing from connections that publish: "
    "apply_async hangs.",
    fix="rabbitmq-diagnostics alarms           # free memory or disk, or drain the queues",
    evidence=(f"{DOCS}/alarms",),
)
def alarms(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """An alarm is on."""
    for server in facts.rabbitmq:
        shown = server.endpoint.shown
        if server.error is not None:
            yield unknown(shown, server.error)
        elif server.memory_alarm is None and server.disk_alarm is None:
            yield unknown(shown, server.management_error or "the alarms")
        else:
            on = [
                name
                for name, is_on in (("memory", server.memory_alarm), ("disk", server.disk_alarm))
                if is_on
            ]
            if on:
                yield problem(shown, f"the {' and '.join(on)} alarm is on")
            else:
                yield passed(shown, "no alarm is on")
