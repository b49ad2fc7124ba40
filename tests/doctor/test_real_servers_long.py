"""Servers in states that would harm other tests: a RabbitMQ under alarm, an unsafe PostgreSQL, a pooler."""

import os
import secrets
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from holdfast.doctor.gather import Gathered
from holdfast.doctor.probes import databases, rabbitmq_server
from scripts.services import packages, rabbitmq
from scripts.services.process import free_ports, spawn, stop, wait_until
from tests.acceptance import servers
from tests.doctor.examining import celery, is_fine, is_harmless, is_problem, of_app

pytestmark = [pytest.mark.long, pytest.mark.slow]
# The checks that are proven in this file.
LONG = ("P2", "Q12")


def test_the_alarm_of_a_broker(monkeypatch):
    """A broker that starts above its memory limit has the alarm on; guest on this machine is harmless."""
    text = rabbitmq.CONFIGURATION.replace("absolute = 512MB", "absolute = 10MB")
    monkeypatch.setattr(
        rabbitmq, "CONFIGURATION", text.replace("default_user = holdfast", "default_user = guest")
    )
    monkeypatch.setattr(rabbitmq.secrets, "token_hex", lambda _: "guest")
    server = servers.RabbitMQ()
    try:
        port = urlsplit(server.url).port
        url = f"amqp://guest:guest@127.0.0.1:{port}//"
        management = f"http://guest:guest@127.0.0.1:{urlsplit(server.management).port}"

        def known():
            return rabbitmq_server.probe(url, management)

        assert wait_until(lambda: bool(known().memory_alarm), 60), known()
        facts = of_app(celery(url)) + Gathered(rabbitmq=(known(),))
        is_problem("Q12", facts)
        is_harmless("S1", facts)
    finally:
        server.close()


def test_a_server_that_does_not_write_to_disk():
    """Fsync and full pages off are found on a real server, and pass once they are on."""
    server = servers.PostgreSQL()
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for name in ("fsync", "full_page_writes"):
                connection.execute(f"ALTER SYSTEM SET {name} = off")
                connection.execute("SELECT pg_reload_conf()")
                assert wait_until(lambda: _setting(server.url, name) == "off", 30)  # noqa: B023 - used at once
                is_problem("P1", Gathered(databases=(databases.probe(server.url),)))
                connection.execute(f"ALTER SYSTEM RESET {name}")
                connection.execute("SELECT pg_reload_conf()")
                assert wait_until(lambda: _setting(server.url, name) == "on", 30)  # noqa: B023 - used at once
            is_fine("P1", Gathered(databases=(databases.probe(server.url),)))
    finally:
        server.close()


def _setting(url, name):
    with psycopg.connect(url) as connection:
        return connection.execute(f"SHOW {name}").fetchone()[0]


@pytest.fixture
def folder():
    """A folder that an unprivileged user may enter."""
    path = Path(tempfile.mkdtemp(prefix="holdfast-doctor-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_known_by_its_sessions(mode, require, folder):
    """A real PgBouncer in either mode; only in transaction mode do session features hurt."""
    server = urlsplit(require("postgresql"))
    [port] = free_ports(1)
    password = secrets.token_hex(8)
    (folder / "users").write_text(f'"pooled" "{password}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\npooled = host={server.hostname} port={server.port} user={server.username}"
        f" password={server.password} dbname=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = plain\nauth_file = {folder}/users\npool_mode = {mode}\nlogfile =\npidfile =\n"
        "default_pool_size = 5\nignore_startup_parameters = extra_float_digits\n"
    )
    for path in folder.iterdir():
        path.chmod(0o644)
    # Like PostgreSQL, it refuses to run as root.
    words = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    process = spawn([*words, packages.program("pgbouncer"), f"{folder}/pgbouncer.ini"], folder / "log")
    url = f"postgresql://pooled:{password}@127.0.0.1:{port}/pooled"
    try:
        assert wait_until(lambda: databases.probe(url).error is None, 30), databases.probe(url).error
        features = ("HOLDFAST_DATABASE_PREPARE",)
        known = databases.probe(url, session_features=features)
        assert known.pooler == mode
        if mode == "transaction":
            is_problem("P2", Gathered(databases=(known,)))
            is_harmless("P2", Gathered(databases=(databases.probe(url),)))
        else:
            is_fine("P2", Gathered(databases=(known,)))
    finally:
        stop(process)
