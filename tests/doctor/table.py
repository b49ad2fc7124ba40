"""Facts for every check, in the bad state, in the good one, and where it applies in one that does no harm."""

from dataclasses import replace

from holdfast.doctor import redaction
from holdfast.doctor.facts import (
    AppFacts,
    ClientFacts,
    DatabaseFacts,
    Declared,
    DoctorFacts,
    InstallationFacts,
    MachineFacts,
    ModelFacts,
    QueueFacts,
    RabbitFacts,
    RedisFacts,
    TaskFacts,
)

REDIS = redaction.endpoint("redis://:s3cret@redis.internal:6379/0")
RABBIT = redaction.endpoint("amqp://app:s3cret@rabbit.internal:5672/shop")
POSTGRES = redaction.endpoint("postgresql://app:s3cret@db.internal/shop")
SQLITE = redaction.endpoint("sqlite:////var/lib/holdfast/holdfast.db")
CURRENT = {"celery": "5.7.0", "kombu": "5.7.0"}
OLD = {"celery": "5.5.3", "kombu": "5.5.4"}


def task(**options):
    return TaskFacts("shop.build", **options)


def app(broker=REDIS, **options):
    return AppFacts("shop:app", broker=broker, **options)


def facts(*apps, **options):
    return DoctorFacts(apps=apps, **{"versions": CURRENT, **options})


LATE = task(acks_late=True, reject_on_worker_lost=True, retry_on_worker_lost=True, time_limit=600)
GUARDED = replace(LATE, guarded=True)
SAFE = app(
    tasks=(replace(LATE, guarded=True),),
    prefetch_multiplier=1,
    cancels_on_connection_loss=True,
    soft_shutdown_timeout=20,
    connection_max_retries=None,
    socket_timeout=30,
    socket_keepalive=True,
)


def of(**options):
    """The application in order, with these settings changed; its task is not guarded."""
    return facts(replace(SAFE, tasks=(LATE,), **options))


def guarded(**options):
    """The same with a guarded task."""
    return facts(replace(SAFE, **options))


def with_task(**options):
    return facts(replace(SAFE, tasks=(replace(LATE, **options),)))


def guarded_task(**options):
    return facts(replace(SAFE, tasks=(replace(GUARDED, **options),)))


def on_rabbit(changed=LATE, server=None, declared=None, **options):
    server = RabbitFacts(RABBIT, version="3.13.7") if server is None else server
    defaults = {"confirms_publish": True, "queues": (QueueFacts("celery"),), **options}
    changed_app = replace(SAFE, broker=RABBIT, tasks=(changed,), **defaults)
    return facts(changed_app, rabbitmq=(server,), declared=declared or Declared())


def on_redis(changed=LATE, **options):
    server = RedisFacts(
        REDIS,
        version="7.0.15",
        **{
            "maxmemory": 1 << 30,
            "maxmemory_policy": "noeviction",
            "used_memory": 1 << 20,
            "append_only": True,
            "snapshots": False,
            "replicas": 0,
            "min_replicas_to_write": 0,
            "timeout": 0,
            "clock_difference": 0.1,
            "unacknowledged": 2,
            "consumers": 1,
            "other_keys": 0,
            **options,
        },
    )
    return facts(replace(SAFE, tasks=(changed,), concurrency=2), redis=(server,))


def database(endpoint=POSTGRES, **options):
    known = {
        "fsync": True,
        "synchronous_commit": "on",
        "full_page_writes": True,
        "pooler": "none",
        "revision": "0015",
        "needed_revision": "0015",
        "clock_difference": 0.01,
        "lease": 12.0,
        **options,
    }
    return facts(databases=(DatabaseFacts(endpoint, **known),))


def client(**options):
    known = {"max_retries": 0, "timeout": 60.0, **options}
    return facts(
        replace(SAFE, tasks=(replace(LATE, soft_time_limit=300),)),
        clients=(ClientFacts("tasks.py:3", "openai", "OpenAI", **known),),
    )


def installation(**options):
    return facts(installation=InstallationFacts(**options))


def machine(**options):
    return facts(machine=MachineFacts(**options), installation=InstallationFacts())


LOCKED = replace(LATE, lock="celery-singleton", lock_expiry=900.0)
QUORUM = QueueFacts("celery", type="quorum")
PAID = (ModelFacts("openai", "gpt-4o-mini", priced=True),)

# By check: facts in the bad state, facts in the good one, and facts where it is harmless, if there are any.
TABLE = {
    "C1": (with_task(), with_task(acks_late=False), guarded_task()),
    "C2": (with_task(acks_late=False), with_task(), None),
    "C3": (
        with_task(reject_on_worker_lost=False, retry_on_worker_lost=False),
        with_task(),
        guarded_task(reject_on_worker_lost=False, retry_on_worker_lost=False),
    ),
    "C4": (
        with_task(retry_on_worker_lost=False),
        with_task(),
        guarded_task(retry_on_worker_lost=False),
    ),
    "C5": (of(cancels_on_connection_loss=False), of(), guarded(cancels_on_connection_loss=False)),
    "C6": (of(prefetch_multiplier=4), of(), guarded(prefetch_multiplier=4)),
    "C7": (
        with_task(retry_delay=7200.0),
        with_task(retry_delay=60.0),
        guarded_task(retry_delay=7200.0),
    ),
    "C8": (with_task(time_limit=None), with_task(), guarded_task(time_limit=None)),
    "C9": (with_task(acks_on_timeout=False), with_task(), guarded_task(acks_on_timeout=False)),
    "C10": (
        of(soft_shutdown_timeout=0.0),
        replace(of(), declared=Declared(grace_period=30)),
        guarded(soft_shutdown_timeout=0.0),
    ),
    "C12": (
        of(deduplicates_successful=True, result_backend=redaction.endpoint("rpc://")),
        of(deduplicates_successful=True, result_backend=POSTGRES),
        None,
    ),
    "C13": (replace(of(), versions=OLD), of(), None),
    "C14": (
        replace(of(), declared=Declared(liveness="celery -A shop inspect ping")),
        replace(of(), declared=Declared(liveness="python check_progress.py")),
        None,
    ),
    "C15": (of(connection_max_retries=100), of(), None),
    "C17": (of(pool="gevent"), of(), guarded(pool="gevent")),
    "C18": (
        replace(of(beat_entries=3), declared=Declared(beats=2)),
        replace(of(beat_entries=3), declared=Declared(beats=1)),
        None,
    ),
    "R1": (of(visibility_timeout=300.0), of(visibility_timeout=900.0), guarded(visibility_timeout=300.0)),
    "R2": (
        of(result_backend=REDIS, visibility_timeout=7200.0),
        of(result_backend=REDIS, visibility_timeout=7200.0, result_visibility_timeout=7200.0),
        guarded(result_backend=REDIS, visibility_timeout=7200.0),
    ),
    "R3": (
        facts(replace(SAFE, tasks=(LATE,)), replace(SAFE, name="billing:app", tasks=(LATE,))),
        of(),
        facts(SAFE, replace(SAFE, name="billing:app")),
    ),
    "R4": (of(visibility_timeout=14_400.0), of(), guarded(visibility_timeout=14_400.0)),
    "R5": (
        on_redis(maxmemory_policy="allkeys-lru"),
        on_redis(),
        on_redis(maxmemory_policy="allkeys-lru", maxmemory=0),
    ),
    "R6": (on_redis(used_memory=900 << 20), on_redis(), None),
    "R7": (on_redis(append_only=False), on_redis(), on_redis(GUARDED, append_only=False)),
    "R9": (
        on_redis(used_as=("broker", "locks"), replicas=1),
        on_redis(used_as=("broker", "locks"), replicas=1, min_replicas_to_write=1),
        on_redis(used_as=("leases",), replicas=1),
    ),
    "R10": (of(socket_timeout=None), of(), None),
    "R11": (of(socket_keepalive=False), of(), None),
    "R12": (of(health_check_interval=0.0), of(), None),
    "R14": (on_redis(timeout=300), on_redis(), None),
    "R15": (of(result_backend=REDIS), of(), guarded(result_backend=REDIS)),
    "R16": (on_redis(clock_difference=-400.0), on_redis(), on_redis(GUARDED, clock_difference=400.0)),
    "R18": (on_redis(unacknowledged=500), on_redis(), None),
    "Q1": (
        on_rabbit(replace(LATE, time_limit=3600.0)),
        on_rabbit(),
        on_rabbit(replace(GUARDED, time_limit=3600.0)),
    ),
    "Q2": (
        on_rabbit(replace(LATE, time_limit=3600.0), RabbitFacts(RABBIT, version="4.3.1"), queues=(QUORUM,)),
        on_rabbit(LATE, RabbitFacts(RABBIT, version="4.3.1"), queues=(QUORUM,)),
        on_rabbit(
            replace(GUARDED, time_limit=3600.0), RabbitFacts(RABBIT, version="4.3.1"), queues=(QUORUM,)
        ),
    ),
    "Q3": (
        on_rabbit(LATE, RabbitFacts(RABBIT, version="4.0.2"), queues=(QUORUM,)),
        on_rabbit(
            LATE,
            RabbitFacts(RABBIT, version="4.0.2"),
            queues=(replace(QUORUM, arguments={"x-dead-letter-exchange": "dead"}),),
        ),
        on_rabbit(GUARDED, RabbitFacts(RABBIT, version="4.0.2"), queues=(QUORUM,)),
    ),
    "Q5": (
        on_rabbit(confirms_publish=False),
        on_rabbit(),
        on_rabbit(GUARDED, confirms_publish=False),
    ),
    "Q6": (
        on_rabbit(queues=(QueueFacts("celery", durable=False),)),
        on_rabbit(),
        on_rabbit(GUARDED, delivery_mode=1),
    ),
    "Q7": (
        on_rabbit(queues=(QueueFacts("celery", arguments={"x-max-length": 1000}),)),
        on_rabbit(
            queues=(QueueFacts("celery", arguments={"x-max-length": 9, "x-overflow": "reject-publish"}),)
        ),
        on_rabbit(GUARDED, queues=(QueueFacts("celery", arguments={"x-max-length": 1000}),)),
    ),
    "Q8": (on_rabbit(heartbeat=0.0), on_rabbit(), on_rabbit(GUARDED, pool="solo")),
    "Q9": (on_rabbit(queues=(QueueFacts("celery"), replace(QUORUM, name="bulk"))), on_rabbit(), None),
    "Q10": (
        replace(on_rabbit(LATE, RabbitFacts(RABBIT, version="4.3.0")), versions=OLD),
        on_rabbit(LATE, RabbitFacts(RABBIT, version="4.3.0")),
        None,
    ),
    "Q12": (
        on_rabbit(server=RabbitFacts(RABBIT, version="4.0.2", memory_alarm=True, disk_alarm=False)),
        on_rabbit(server=RabbitFacts(RABBIT, version="4.0.2", memory_alarm=False, disk_alarm=False)),
        None,
    ),
    "G1": (
        facts(app(tasks=(LOCKED,))),
        facts(app(tasks=(replace(LOCKED, acks_late=False),))),
        facts(app(tasks=(replace(LOCKED, guarded=True),))),
    ),
    "G2": (
        facts(app(tasks=(replace(LOCKED, lock_expiry=None),))),
        facts(app(tasks=(LOCKED,))),
        facts(app(tasks=(replace(LOCKED, lock_expiry=None, guarded=True),))),
    ),
    "G3": (
        facts(app(tasks=(replace(LOCKED, lock_expiry=60.0),))),
        facts(app(tasks=(LOCKED,))),
        facts(app(tasks=(replace(LOCKED, lock_expiry=60.0, guarded=True),))),
    ),
    "L1": (client(max_retries=2), client(), client(max_retries=2, through_guard=True)),
    "L2": (client(timeout=600.0), client(), client(timeout=600.0, through_guard=True)),
    "P1": (database(synchronous_commit="off"), database(), None),
    "P2": (
        database(pooler="transaction", session_features=("HOLDFAST_DATABASE_PREPARE",)),
        database(),
        database(pooler="transaction"),
    ),
    "P3": (database(revision="0014"), database(), None),
    "T1": (database(clock_difference=5.0), database(), None),
    "H1": (
        installation(sqlite=True, hosts=("a", "b")),
        installation(sqlite=True, hosts=("a",)),
        None,
    ),
    "H2": (installation(hosts=("a", "b")), installation(hosts=("a", "b"), local_blobs=False), None),
    "H3": (installation(ocr_missing=("deu",)), installation(), None),
    "H4": (
        installation(models=(ModelFacts("openai", "gpt-99", priced=False),)),
        installation(models=PAID),
        None,
    ),
    "H5": (
        installation(models=PAID, budgets=0),
        installation(models=PAID, budgets=1),
        None,
    ),
    "H7": (
        machine(disk_free=1 << 20, disk_total=1 << 34, disk_folder="/data"),
        machine(disk_free=1 << 33, disk_total=1 << 34, disk_folder="/data"),
        None,
    ),
    "H8": (machine(memory_limit=256 << 20), machine(memory_limit=4 << 30), None),
    "S1": (
        facts(app(redaction.endpoint("amqp://guest:guest@rabbit.internal//"))),
        facts(app(redaction.endpoint("amqp://app:s3cret@rabbit.internal//"))),
        facts(app(redaction.endpoint("amqp://guest:guest@localhost//"))),
    ),
}
