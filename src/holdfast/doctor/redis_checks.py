"""Checks of applications on Redis, and of the Redis servers that they use."""

from collections.abc import Iterator

from holdfast.doctor import judging, spans
from holdfast.doctor.facts import DEFAULT_VISIBILITY_TIMEOUT, AppFacts, DoctorFacts, RedisFacts
from holdfast.doctor.findings import CheckArea, CheckOutcome, Severity, harmless, passed, problem, unknown

area = CheckArea("Redis")

BROKER_DOCS = "https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html"
CONFIG_DOCS = "https://redis.io/docs/latest/operate/oss_and_stack/management/config-file"
KOMBU_DOCS = "https://docs.celeryq.dev/projects/kombu/en/stable/reference/kombu.transport.redis.html"
HOURS = 3600.0
CLOCK_SHARE = 0.05


def _on_redis(facts: DoctorFacts) -> Iterator[AppFacts]:
    return (app for app in facts.apps if app.broker.kind == "redis")


def _servers(facts: DoctorFacts, fact: str) -> Iterator[tuple[RedisFacts, CheckOutcome | None]]:
    """Every Redis, with what to say of it if the fact could not be had."""
    for server in facts.redis:
        missing = None
        if server.error is not None:
            missing = unknown(server.endpoint.shown, server.error)
        elif getattr(server, fact) is None:
            missing = unknown(
                server.endpoint.shown, "the server does not tell it to this user (CONFIG, INFO)"
            )
        yield server, missing


def _guarded_broker(server: RedisFacts, facts: DoctorFacts) -> bool:
    """The server has no locks, and every application on it survives the loss of its messages."""
    apps = [app for app in facts.apps if app.broker.server == server.endpoint.server]
    return "locks" not in server.used_as and bool(apps) and all(app.all_guarded for app in apps)


@area.check(
    "R1",
    Severity.ERROR,
    title="The visibility timeout is shorter than a task",
    why="Redis delivers the message again each time the visibility timeout passes while the task runs: a "
    "task of 20 s with a timeout of 5 s ran 4 times from one call, also with celery-once, celery-singleton "
    "and celery-heimdall.",
    fix="app.conf.broker_transport_options |= {'visibility_timeout': 7200}  # above the longest task\n"
    "app.conf.result_backend_transport_options |= {'visibility_timeout': 7200}",
    evidence=(f"{BROKER_DOCS}#visibility-timeout", "measured: ⌈task ÷ timeout⌉ executions"),
)
def visibility_timeout(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The visibility timeout against the longest task that is acknowledged late."""
    for app in _on_redis(facts):
        late = [task for task in app.examined if task.acks_late]
        set_by = "unset" if app.visibility_timeout is None else "set"
        limits = [judging.limit_of(task, facts.declared) for task in late]
        known = [each for each in limits if each is not None]
        over = [
            task
            for task, limit in zip(late, limits, strict=True)
            if (limit is None and (app.visibility_timeout is None or task.guarded))
            or (limit is not None and limit >= app.visibility)
        ]
        endless = [task for task, limit in zip(late, limits, strict=True) if limit is None]
        if endless and not over:
            yield unknown(
                app.name, "how long a task takes: it has no time limit (C8); or --longest-task SECONDS"
            )
            continue
        worst = max(known, default=None)
        takes = "tasks have no time limit" if worst is None else f"a task may take {spans.span(worst)}"
        timeout = judging.rounded_up(worst or 2 * DEFAULT_VISIBILITY_TIMEOUT)
        yield judging.judged(
            app,
            over,
            f"visibility_timeout is {set_by} ({spans.span(app.visibility)}), and {takes}",
            f"visibility timeout {spans.span(app.visibility)}, {takes if late else 'early acknowledgement'}",
            f"app.conf.broker_transport_options |= {{'visibility_timeout': {timeout}}}\n"
            f"app.conf.result_backend_transport_options |= {{'visibility_timeout': {timeout}}}",
        )


@area.check(
    "R2",
    Severity.ERROR,
    title="Visibility timeouts differ",
    why="Where broker and result backend are both on Redis with different timeouts, the shorter one decides: "
    "tasks run again although the broker's timeout is long.",
    fix="app.conf.broker_transport_options |= {'visibility_timeout': 7200}\n"
    "app.conf.result_backend_transport_options |= {'visibility_timeout': 7200}\n"
    "app.conf.visibility_timeout = 7200",
    evidence=(f"{BROKER_DOCS}#visibility-timeout",),
)
def equal_timeouts(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The timeout of the broker against that of the result backend."""
    for app in _on_redis(facts):
        if app.result_backend is None or app.result_backend.kind != "redis":
            yield passed(app.name, "the result backend is not Redis")
            continue
        results = app.result_visibility_timeout
        second = DEFAULT_VISIBILITY_TIMEOUT if results is None else results
        if app.visibility == second:
            yield passed(app.name, f"both are {spans.span(second)}")
            continue
        seen = f"{spans.span(app.visibility)} for the broker, {spans.span(second)} for the result backend"
        longest = int(max(app.visibility, second))
        fix = (
            f"app.conf.broker_transport_options |= {{'visibility_timeout': {longest}}}\n"
            f"app.conf.result_backend_transport_options |= {{'visibility_timeout': {longest}}}"
        )
        yield judging.whole(app, seen, fix)


@area.check(
    "R3",
    Severity.ERROR,
    title="Several applications in one Redis database",
    why="All of them keep unacknowledged messages under the same key, and each restores those of the others "
    "by its own timeout: the shortest one decides for all.",
    fix="app.conf.broker_url = 'redis://HOST:PORT/3'  # a database number of its own for each application\n"
    "# or: app.conf.broker_transport_options |= {'global_keyprefix': 'NAME:'}",
    evidence=(f"{KOMBU_DOCS}", f"{BROKER_DOCS}#visibility-timeout"),
)
def shared_number(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Applications whose broker is the same database of the same server."""
    for app in _on_redis(facts):
        others = [
            each.name
            for each in facts.apps
            if each is not app
            and (each.broker.server, each.broker.name) == (app.broker.server, app.broker.name)
        ]
        number = facts.declared.apps_on_broker
        if others:
            yield judging.whole(app, f"{app.broker.shown} is also the broker of {spans.names(others)}")
        elif number is not None and number > 1:
            yield judging.whole(app, f"{number} applications use {app.broker.shown}")
        else:
            yield passed(app.name, "no other application is known in this database")


@area.check(
    "R4",
    Severity.WARNING,
    title="Recovery after a crash takes hours",
    why="The message of a worker that was killed is delivered again when the visibility timeout has passed, "
    "plus the time between two looks at unacknowledged messages. Until then the task is just missing.",
    fix="# guard long tasks: a dead worker's task then runs elsewhere within lease + sweep (15 s)\n"
    "# and look more often, with kombu 5.7:\n"
    "app.conf.broker_transport_options |= {'unacked_restore_interval': 2, 'unacked_restore_throttle': 1}",
    evidence=(f"{KOMBU_DOCS}", "kombu: restore interval 10 s, and a throttle of 10"),
)
def slow_recovery(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """A visibility timeout of more than an hour with late acknowledgement."""
    for app in _on_redis(facts):
        wait = app.visibility + app.restore_seconds
        if app.visibility <= HOURS:
            yield passed(app.name, f"a lost message comes back within {spans.span(wait)}")
            continue
        affected = [task for task in app.examined if task.acks_late]
        yield judging.judged(
            app,
            affected,
            f"a lost message comes back after up to {spans.span(wait)}",
            "no task is acknowledged late",
        )


@area.check(
    "R5",
    Severity.ERROR,
    title="Redis may evict queues and locks",
    why="At its memory limit Redis deletes keys: with `allkeys-*` whole queues, with `volatile-*` locks and "
    "results, which have an expiry. Nobody is told.",
    fix="redis-cli CONFIG SET maxmemory-policy noeviction && redis-cli CONFIG REWRITE",
    evidence=("https://redis.io/docs/latest/develop/reference/eviction", f"{BROKER_DOCS}#key-eviction"),
)
def eviction(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The eviction policy of every Redis."""
    for server, missing in _servers(facts, "maxmemory_policy"):
        shown = server.endpoint.shown
        if missing is not None:
            yield missing
        elif server.maxmemory_policy == "noeviction":
            yield passed(shown, "maxmemory-policy is noeviction")
        elif server.maxmemory == 0:
            seen = f"maxmemory-policy is {server.maxmemory_policy}"
            yield harmless(shown, seen, "maxmemory is 0, so that nothing is evicted until somebody sets it")
        elif _guarded_broker(server, facts):
            yield harmless(shown, f"maxmemory-policy is {server.maxmemory_policy}", judging.GUARDED)
        else:
            yield problem(shown, f"maxmemory-policy is {server.maxmemory_policy}")


@area.check(
    "R6",
    Severity.WARNING,
    title="Redis is nearly full",
    why="At maxmemory with `noeviction`, every publish fails: tasks can no longer be sent.",
    fix="redis-cli CONFIG SET maxmemory 2gb    # or find out what fills it: redis-cli --bigkeys",
    evidence=("https://redis.io/docs/latest/develop/reference/eviction",),
)
def memory(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Used memory against the limit."""
    for server, missing in _servers(facts, "maxmemory"):
        shown, limit, used = server.endpoint.shown, server.maxmemory, server.used_memory
        if missing is not None or used is None:
            yield missing or unknown(shown, "how much memory is used")
        elif not limit:
            yield passed(shown, "maxmemory is 0: no limit of its own")
        elif used > 0.8 * limit:
            yield problem(shown, f"{spans.size(used)} of {spans.size(limit)} are used ({used / limit:.0%})")
        else:
            yield passed(shown, f"{used / limit:.0%} of {spans.size(limit)} are used")


@area.check(
    "R7",
    Severity.ERROR,
    title="Redis forgets everything when it restarts",
    why="With neither an append-only file nor snapshots, a restart leaves an empty server: every queued task "
    "and every lock is gone.",
    fix="redis-cli CONFIG SET appendonly yes && redis-cli CONFIG REWRITE",
    evidence=("https://redis.io/docs/latest/operate/oss_and_stack/management/persistence",),
)
def persistence(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Whether anything is written to disk."""
    for server, missing in _servers(facts, "append_only"):
        shown = server.endpoint.shown
        if missing is not None:
            yield missing
        elif server.append_only:
            yield passed(shown, "appendonly is on")
        elif server.snapshots is None:
            yield unknown(shown, "whether snapshots are taken: CONFIG GET is not allowed")
        elif server.snapshots:
            yield passed(shown, "snapshots are on; what was written since the last one is lost at a crash")
        elif _guarded_broker(server, facts):
            yield harmless(shown, "neither appendonly nor snapshots", judging.GUARDED)
        else:
            yield problem(shown, "neither appendonly nor snapshots (save) are on")


@area.check(
    "R9",
    Severity.ERROR,
    title="A failover hands locks out twice",
    why="Replication is asynchronous: a lock that the primary granted just before it failed is unknown to "
    "the replica that takes over, and is granted again.",
    fix="redis-cli CONFIG SET min-replicas-to-write 1 && redis-cli CONFIG SET min-replicas-max-lag 10\n"
    "# narrows the window; only a fence in the database that is written to closes it",
    evidence=("https://redis.io/docs/latest/operate/oss_and_stack/management/replication",),
)
def replicated_locks(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Locks on a server that has replicas and waits for none of them."""
    for server, missing in _servers(facts, "replicas"):
        shown = server.endpoint.shown
        holds = {"locks", "leases"} & set(server.used_as)
        if not holds:
            yield passed(shown, "it holds no locks")
        elif missing is not None:
            yield missing
        elif not server.replicas or (server.min_replicas_to_write or 0) > 0:
            waits = f"it has {server.replicas} replicas and waits for {server.min_replicas_to_write or 0}"
            yield passed(shown, waits)
        elif "locks" in holds:
            yield problem(shown, f"locks, {server.replicas} replicas, and min-replicas-to-write is 0")
        else:
            seen = f"leases, {server.replicas} replicas, and min-replicas-to-write is 0"
            reason = "a lease only says who should work: who may write is tested in the database (the fence)"
            yield harmless(shown, seen, reason)


def _option(facts: DoctorFacts, name: str, present: bool | None, app: AppFacts, seen: str) -> CheckOutcome:
    if present:
        return passed(app.name, f"{name} is set")
    if not judging.older(facts.versions.get("kombu"), 5, 7) and facts.versions.get("kombu"):
        extra = "; kombu 5.7 notices a dead connection by its health check, within a minute"
        return problem(app.name, seen + extra)
    return problem(app.name, seen)


@area.check(
    "R10",
    Severity.WARNING,
    title="A half-open connection hangs",
    why="When a firewall or a failover drops a connection silently, a read without a timeout waits for ever: "
    "the worker looks alive and does nothing.",
    fix="app.conf.broker_transport_options |= {'socket_timeout': 30, 'socket_connect_timeout': 30}",
    evidence=(KOMBU_DOCS, "celery#8030"),
)
def socket_timeout(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """No timeout on the sockets of the broker."""
    for app in _on_redis(facts):
        yield _option(facts, "socket_timeout", bool(app.socket_timeout), app, "socket_timeout is not set")


@area.check(
    "R11",
    Severity.WARNING,
    title="The network drops idle connections",
    why="Load balancers and NAT forget a connection that says nothing for some minutes; the worker's side "
    "does not notice without keepalive.",
    fix="app.conf.broker_transport_options |= {'socket_keepalive': True}",
    evidence=(KOMBU_DOCS,),
)
def socket_keepalive(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """No keepalive on the sockets of the broker."""
    for app in _on_redis(facts):
        yield _option(facts, "socket_keepalive", app.socket_keepalive, app, "socket_keepalive is not set")


@area.check(
    "R12",
    Severity.WARNING,
    title="Connections are not checked before use",
    why="With health_check_interval=0 a connection that died while it was idle is found out by the command "
    "that fails on it.",
    fix="app.conf.broker_transport_options |= {'health_check_interval': 25}",
    evidence=(KOMBU_DOCS,),
)
def health_checks(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The health check of connections is switched off."""
    for app in _on_redis(facts):
        if app.health_check_interval == 0:
            yield problem(app.name, "health_check_interval is 0")
        else:
            yield passed(app.name, f"health_check_interval is {app.health_check_interval or 25:g} s")


@area.check(
    "R14",
    Severity.WARNING,
    title="The server closes connections that wait",
    why="`timeout` closes a client that sends nothing for that long. A worker that waits for messages does "
    "just that, and reconnects again and again.",
    fix="redis-cli CONFIG SET timeout 0 && redis-cli CONFIG SET tcp-keepalive 60 && redis-cli CONFIG REWRITE",
    evidence=(CONFIG_DOCS,),
)
def client_timeout(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The idle timeout of every Redis."""
    for server, missing in _servers(facts, "timeout"):
        if missing is not None:
            yield missing
        elif server.timeout:
            yield problem(server.endpoint.shown, f"timeout is {spans.span(server.timeout)}")
        else:
            yield passed(server.endpoint.shown, "timeout is 0")


@area.check(
    "R15",
    Severity.WARNING,
    title="Queues share a database with other data",
    why="One FLUSHDB of the cache, or one eviction, takes the queues with it.",
    fix="app.conf.broker_url = 'redis://HOST:PORT/0'\n"
    "app.conf.result_backend = 'redis://HOST:PORT/1'  # and the cache on 2",
    evidence=(f"{BROKER_DOCS}#key-eviction",),
)
def shared_data(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Results in the database of the queues, and keys there that are neither."""
    for app in _on_redis(facts):
        backend = app.result_backend
        same = backend is not None and (backend.server, backend.name) == (app.broker.server, app.broker.name)
        others = next(
            (
                server.other_keys
                for server in facts.redis
                if (server.endpoint.server, server.endpoint.name) == (app.broker.server, app.broker.name)
            ),
            None,
        )
        shared = (["results"] if same else []) + ([f"{others} other keys"] if others else [])
        if not shared:
            yield passed(app.name, "the database has queues alone")
        else:
            yield judging.whole(app, f"{app.broker.shown} also has {' and '.join(shared)}")


@area.check(
    "R16",
    Severity.WARNING,
    title="Clocks differ",
    why="When a message was taken is written by the clock of the worker and compared by the clock of another "
    "one. With clocks apart, messages come back too early, while their task runs, or too late.",
    fix="timedatectl set-ntp true              # on every machine",
    evidence=("kombu: transport/redis.py writes scores with time.time()",),
)
def clocks(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """This machine's clock against the server's, by the visibility timeout."""
    for server, missing in _servers(facts, "clock_difference"):
        shown = server.endpoint.shown
        timeouts = [app.visibility for app in _on_redis(facts) if app.broker.server == server.endpoint.server]
        if not timeouts:
            yield passed(shown, "it is no broker")
        elif missing is not None or server.clock_difference is None:
            yield missing or unknown(shown, "the time of the server")
        else:
            difference, allowed = abs(server.clock_difference), CLOCK_SHARE * min(timeouts)
            said = f"this clock and that of Redis differ by {spans.span(round(difference, 1))}"
            if difference <= allowed:
                yield passed(shown, said)
            elif _guarded_broker(server, facts):
                yield harmless(shown, said, judging.GUARDED)
            else:
                yield problem(shown, f"{said}, with a visibility timeout of {spans.span(min(timeouts))}")


@area.check(
    "R18",
    Severity.NOTE,
    title="Messages that no worker holds",
    why="Messages of workers that died wait in `unacked` for the visibility timeout. Many of them mean that "
    "workers die, or that another application shares the database.",
    fix="redis-cli -n DB HLEN unacked          # they come back by themselves after the visibility timeout",
    evidence=("kombu: transport/redis.py, QoS.restore_visible",),
)
def orphans(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Unacknowledged messages against what the connected workers can hold."""
    for server, missing in _servers(facts, "unacknowledged"):
        shown = server.endpoint.shown
        app = next((each for each in _on_redis(facts) if each.broker.server == server.endpoint.server), None)
        if app is None:
            continue
        if missing is not None or server.unacknowledged is None:
            yield missing or unknown(shown, "the unacknowledged messages")
            continue
        held = (server.consumers or 0) * max(app.prefetch_multiplier, 1) * (app.concurrency or 16)
        counted = f"{server.unacknowledged} unacknowledged messages, {server.consumers or 0} waiting workers"
        if server.unacknowledged > 2 * held + 10:
            yield problem(shown, f"{counted}, which hold {held} at most")
        else:
            yield passed(shown, counted)
