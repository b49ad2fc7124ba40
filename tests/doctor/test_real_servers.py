"""Real servers in the bad state and in the good one: a Redis of this file, a virtual host, a database.

They are together so that few servers are started. What needs more of them is in `test_real_servers_long.py`.
"""

import contextlib
import secrets
import time
from urllib.parse import urlsplit

import celery_singleton
import kombu
import psycopg
import pytest
import redis

from holdfast.chaos.brokers import RabbitBroker
from holdfast.doctor.gather import Gathered
from holdfast.doctor.probes import databases, rabbitmq_server, redis_server
from tests.acceptance import servers
from tests.doctor.examining import celery, is_fine, is_harmless, is_problem, of_app

# The checks that are proven in this file.
REDIS = ("R5", "R6", "R7", "R9", "R14", "R15", "R16", "R18", "S1")
RABBITMQ = ("Q1", "Q3", "Q6", "Q7", "Q9")
DATABASES = ("P1", "P3", "T1")


@pytest.fixture(scope="module")
def own_redis():
    """A Redis that no other test uses: its configuration is changed."""
    server = servers.Redis()
    with redis.Redis.from_url(server.url) as client:
        yield server.url, client
    server.close()


@pytest.fixture
def configured(own_redis):
    """Sets options of the server, and puts all of them back."""
    url, client = own_redis
    good = {
        "maxmemory": "0",
        "maxmemory-policy": "noeviction",
        "appendonly": "yes",
        "save": "",
        "timeout": "0",
        "min-replicas-to-write": "0",
    }

    def configure(**options):
        for name, value in options.items():
            client.config_set(name.replace("_", "-"), value)
        return url

    yield configure
    client.flushdb()
    for name, value in good.items():
        client.config_set(name, value)


def with_redis(url, used_as=("broker",), app=None, **options):
    app = celery(f"{url}/0", worker_concurrency=2) if app is None else app
    return of_app(app) + Gathered(redis=(redis_server.probe(f"{url}/0", used_as, **options),))


def test_eviction(configured):
    """A cache's policy on a broker; without a limit it evicts nothing yet."""
    is_harmless("R5", with_redis(configured(maxmemory_policy="allkeys-lru")))
    is_problem("R5", with_redis(configured(maxmemory=str(200 << 20))))
    is_fine("R5", with_redis(configured(maxmemory_policy="noeviction")))


def test_memory(configured, own_redis):
    """Little room above what is used is a problem, a lot of it is not."""
    used = own_redis[1].info()["used_memory"]
    is_problem("R6", with_redis(configured(maxmemory=str(int(used * 1.15)))))
    is_fine("R6", with_redis(configured(maxmemory=str(used * 4))))


def test_persistence(configured):
    """Neither file nor snapshots forgets all; either of them is fine."""
    is_problem("R7", with_redis(configured(appendonly="no")))
    is_fine("R7", with_redis(configured(save="60 1")))
    is_fine("R7", with_redis(configured(save="", appendonly="yes")))


def test_client_timeout(configured):
    """A server that closes idle clients, and one that does not."""
    is_problem("R14", with_redis(configured(timeout="300")))
    is_fine("R14", with_redis(configured(timeout="0")))


def test_clocks(configured):
    """This machine's clock ahead of the server's by more than a twentieth of the timeout."""
    url = configured()
    is_problem("R16", with_redis(url, now=lambda: time.time() + 400))
    is_fine("R16", with_redis(url))


def test_shared_database(configured, own_redis):
    """Results or a cache beside the queues; a queue with messages and results elsewhere are fine."""
    url, client = configured(), own_redis[1]
    app = celery(f"{url}/0")
    app.send_task("shop.build", (1,))
    is_fine("R15", with_redis(url, app=app))
    client.set("page:/", "html")
    is_problem("R15", with_redis(url, app=app))
    client.delete("page:/")
    is_problem("R15", with_redis(url, app=celery(f"{url}/0", backend=f"{url}/0")))
    is_fine("R15", with_redis(url, app=celery(f"{url}/0", backend=f"{url}/1")))


def test_orphans(configured, own_redis):
    """Unacknowledged messages that no connected worker can hold."""
    url, client = configured(), own_redis[1]
    is_fine("R18", with_redis(url))
    client.hset("unacked", mapping={str(number): "{}" for number in range(200)})
    is_problem("R18", with_redis(url))


def test_credentials_on_this_machine(configured, own_redis):
    """A server without a password is harmless while it is on this machine; with one it is fine."""
    url, client = configured(), own_redis[1]
    is_fine("S1", with_redis(url))
    parts = urlsplit(url)
    client.config_set("requirepass", "")
    try:
        bare = f"redis://{parts.hostname}:{parts.port}"
        is_harmless("S1", with_redis(bare))
        assert redis_server.probe(f"{bare}/0").version is not None
    finally:
        client.config_set("requirepass", parts.password)


def test_locks_on_a_replicated_server(configured, own_redis):
    """A replica that nobody waits for, and one that writes wait for; without locks neither matters."""
    url, client = own_redis
    replica = servers.Redis()
    parts = urlsplit(url)
    app = celery(f"{url}/0", base=celery_singleton.Singleton)
    with redis.Redis.from_url(replica.url) as second:
        second.config_set("masterauth", parts.password)
        second.replicaof(parts.hostname, parts.port)
        deadline = time.monotonic() + 60
        while client.info("replication")["connected_slaves"] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        try:
            is_problem("R9", with_redis(url, ("broker", "locks"), app))
            is_fine("R9", with_redis(url, ("broker",), app))
            configured(min_replicas_to_write="1")
            is_fine("R9", with_redis(url, ("broker", "locks"), app))
        finally:
            client.config_set("min-replicas-to-write", "0")
    replica.close()


def test_a_user_who_may_not_ask_gets_no_false_answer(own_redis):
    """Without CONFIG, INFO still tells most, and what it does not is not known."""
    url, client = own_redis
    parts = urlsplit(url)
    client.execute_command(
        "ACL", "SETUSER", "narrow", "on", ">narrow-secret", "~*", "+@all", "-config", "-client"
    )
    try:
        narrow = f"redis://narrow:narrow-secret@{parts.hostname}:{parts.port}/0"
        known = redis_server.probe(narrow)
        assert (known.error, known.maxmemory_policy, known.append_only) == (None, "noeviction", True)
        assert (known.timeout, known.snapshots, known.min_replicas_to_write) == (None, None, None)
        assert "narrow-secret" not in repr(known)
        wrong = redis_server.probe(f"redis://:wrong-secret@{parts.hostname}:{parts.port}/0")
        assert wrong.error is not None
        assert "wrong-secret" not in repr(wrong)
    finally:
        client.execute_command("ACL", "DELUSER", "narrow")


@pytest.fixture(scope="module")
def virtual_host(require, services):
    """A virtual host that no other test uses, and RabbitMQ's management interface."""
    server = RabbitBroker(require("rabbitmq"), services["rabbitmq"]["management"], own=False)
    yield server.url, services["rabbitmq"]["management"]
    server.close()


@pytest.fixture
def declared(virtual_host):
    """Declares queues on the broker and deletes them afterwards; the facts with an application on them."""
    url, management = virtual_host
    with contextlib.ExitStack() as undo:
        connection = undo.enter_context(kombu.Connection(url))
        channel = connection.channel()

        def declare(*queues, **options):
            names = []
            for number, each in enumerate(queues):
                durable, auto_delete = each.pop("durable", True), each.pop("auto_delete", False)
                name = f"shop-{number}-{secrets.token_hex(4)}"
                kombu.Queue(name, durable=durable, auto_delete=auto_delete, queue_arguments=each).declare(
                    channel=channel
                )
                undo.callback(channel.queue_delete, name)
                names.append(name)
            app = celery(url, task_queues=[kombu.Queue(name) for name in names], **options)
            return of_app(app) + Gathered(rabbitmq=(rabbitmq_server.probe(url, management),))

        yield declare


def test_consumer_timeout(declared):
    """A task of an hour on a broker that waits 30 minutes; the release is that of the server."""
    is_problem("Q1", declared({}, task_time_limit=3600))
    is_problem("Q1", declared({}, task_time_limit=None))
    is_fine("Q1", declared({}))
    is_fine("Q1", declared({}, task_time_limit=3600), consumer_timeout=7200.0)


def test_dropped_messages(declared):
    """A quorum queue with a delivery limit, without and with a dead-letter exchange."""
    limited = {"x-queue-type": "quorum", "x-delivery-limit": 3}
    is_problem("Q3", declared(limited.copy()))
    is_fine("Q3", declared(limited | {"x-dead-letter-exchange": "dead"}))


def test_durability(declared):
    """Queues that a restart or the last worker's end deletes; and messages that are not stored."""
    is_problem("Q6", declared({"auto_delete": True}))
    is_problem("Q6", declared({"durable": False}))
    is_problem("Q6", declared({}, task_default_delivery_mode="transient"))
    is_fine("Q6", declared({}))


def test_full_queues(declared):
    """A bounded queue that drops its head, and one that refuses."""
    is_problem("Q7", declared({"x-max-length": 100}))
    is_fine("Q7", declared({"x-max-length": 100, "x-overflow": "reject-publish"}))


def test_mixed_queues(declared):
    """Both types in one application, and quorum queues that a worker would not detect."""
    quorum = {"x-queue-type": "quorum"}
    is_problem("Q9", declared({}, quorum.copy()))
    is_problem("Q9", declared(quorum.copy(), worker_detect_quorum_queues=False))
    is_fine("Q9", declared(quorum.copy(), worker_detect_quorum_queues=True))
    is_fine("Q12", declared({}))


def test_a_broker_without_a_management_interface_is_examined_as_far_as_it_goes(virtual_host):
    """The release is known by the connection; queues and alarms are not, and the reason has no secret."""
    url, _ = virtual_host
    known = rabbitmq_server.probe(url, "http://nobody:hunter22@127.0.0.1:1")
    assert known.version.startswith("3.")
    assert (known.queues, known.memory_alarm) == (None, None)
    assert "hunter22" not in repr(known)
    assert urlsplit(url).password not in repr(known)


@pytest.mark.postgresql
def test_durability_of_postgresql(postgresql_url):
    """A database whose commits are not waited for, and the same one when they are."""
    name = urlsplit(postgresql_url).path.removeprefix("/")
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
        try:
            is_problem("P1", Gathered(databases=(databases.probe(postgresql_url),)))
        finally:
            connection.execute(f'ALTER DATABASE "{name}" RESET synchronous_commit')
    known = databases.probe(postgresql_url)
    is_fine("P1", Gathered(databases=(known,)))
    is_fine("P2", Gathered(databases=(known,)))
    is_fine("P3", Gathered(databases=(known,)))
    assert urlsplit(postgresql_url).password not in repr(known)


@pytest.mark.postgresql
def test_revision_and_clock(require, postgresql_url):
    """A database without our tables, and one whose clock is far from this machine's."""
    is_problem("P3", Gathered(databases=(databases.probe(require("postgresql")),)))
    ahead = databases.probe(postgresql_url, lease=12.0, now=lambda: time.time() + 3)
    is_problem("T1", Gathered(databases=(ahead,)))
    is_fine("T1", Gathered(databases=(databases.probe(postgresql_url, lease=12.0),)))
    unreachable = databases.probe("postgresql://app:hunter22@127.0.0.1:1/shop")
    assert unreachable.error is not None
    assert "hunter22" not in repr(unreachable)


def test_a_file_is_examined_without_a_trace(sqlite_url, tmp_path):
    """A look at SQLite makes no file, not even when there is none yet."""
    before = sorted(path.name for path in tmp_path.iterdir())
    is_fine("P3", Gathered(databases=(databases.probe(sqlite_url),)))
    is_fine("P1", Gathered(databases=(databases.probe(sqlite_url),)))
    is_problem("P3", Gathered(databases=(databases.probe(f"sqlite:///{tmp_path}/none.db"),)))
    assert sorted(path.name for path in tmp_path.iterdir()) == before
