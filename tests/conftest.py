"""What every test may ask for: a fresh, migrated database on each dialect, and Redis.

The servers are those of `make services-up`, found in `.services/services.json`. Without them a test is
skipped and says so; with CI=true it fails, for there a skipped proof is no proof.
"""

import contextlib
import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import psycopg
import pytest
import redis

from holdfast.providers.base import Provider
from holdfast.testing.meter import Meter
from tests import order

RECORD = Path(__file__).resolve().parents[1] / ".services" / "services.json"

# No deadline: a busy machine is not a bug. The blob replays a failure anywhere.
hypothesis.settings.register_profile("holdfast", deadline=None, print_blob=True)
hypothesis.settings.load_profile("holdfast")


# Variations of proofs that are in `make test` by another one of them: left out there, run by `make chaos`.
LONG = (
    ("tests/acceptance/test_service", "redis"),
    ("tests/acceptance/test_service_faults.py", "storm", "embedded"),
    ("tests/acceptance/test_traces.py", "redis"),
    ("tests/acceptance/test_traces.py", "embedded"),
    ("tests/acceptance/test_embedded.py", "rolling_restart"),
    ("tests/acceptance/test_redis.py", "rolling_restart"),
    ("tests/indexing/test_crash.py", "sqlite-keyed"),
    ("tests/indexing/test_crash.py", "postgresql-unkeyed"),
    ("tests/actions/test_race.py", "sqlite"),
    ("tests/actions/test_race.py", "anywhere"),
    ("tests/api/test_duplicates_race.py", "sqlite"),
    ("tests/api/test_duplicates_race.py", "anywhere"),
    ("tests/money/test_5_budget_races.py", "a_death_at"),
    ("tests/money/test_5_budget_races.py", "of_its_own", "anywhere"),
    ("tests/money/test_5_budget_races.py", "of_its_own", "sqlite"),
    ("tests/examples/test_examples.py", "fastapi"),
    ("tests/examples/test_examples.py", "flask"),
    ("tests/doctor/test_projects.py", "example", "fastapi"),
    ("tests/doctor/test_projects.py", "example", "flask"),
    ("tests/guard/test_processes.py", "killed_process", "rabbitmq"),
    ("tests/guard/test_processes.py", "frozen", "redis"),
    ("tests/guard/test_processes.py", "chord", "redis"),
    ("tests/guard/test_processes.py", "time_limits", "rabbitmq"),
    ("tests/guard/test_processes.py", "in_a_transaction", "rabbitmq"),
    ("tests/api/test_malformed.py", "no_page", "postgresql"),
    ("tests/api/test_malformed.py", "no_query", "sqlite"),
    ("tests/indexing/test_crash.py", "a_cancel", "sqlite"),
    ("tests/indexing/test_crash.py", "a_failure", "sqlite"),
    ("tests/indexing/test_other_model.py", "the_command_line", "sqlite"),
    ("tests/indexing/test_reader.py", "workers_die", "sqlite"),
    ("tests/indexing/test_silent_provider.py", "index_says", "sqlite"),
    ("tests/jobs/test_derived_answers.py", "a_word_of_a_deleted", "sqlite"),
    ("tests/fundamentals/test_cli_demo.py", "interrupted", "[1]"),
    ("tests/fundamentals/test_cli_demo.py", "interrupted", "[15]"),
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is `long`; for several workers, put the files in an order that keeps all of them busy."""
    for item in items:
        if any(all(part in item.nodeid for part in parts) for parts in LONG):
            item.add_marker(pytest.mark.long)
    if hasattr(config, "workerinput"):
        items[:] = order.spread(items)


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """A command that runs in this process closes what it writes to others; the tests do not."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def _nothing_of_this_shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting and no data of whoever runs the tests, and a current folder without a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    for name in [name for name in os.environ if name.upper().startswith("HOLDFAST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def meter() -> Iterator[Meter]:
    """A provider that charges, honours no idempotency keys and keeps a book."""
    with Meter() as running:
        yield running


@pytest.fixture
def provider(meter: Meter) -> Iterator[Provider]:
    """A client of the meter."""
    with contextlib.closing(meter.provider()) as client:
        yield client


@pytest.fixture(scope="session")
def services() -> dict[str, Any]:
    """The record of `make services-up`; empty when nothing was started."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


@pytest.fixture(scope="session")
def require(services: dict[str, Any]) -> Callable[[str], str]:
    """`require("redis")` is that server's address; without it the test is skipped, or fails under CI=true."""

    def address(service: str) -> str:
        entry = services.get(service, {"missing": "not started: run `make services-up`"})
        if "url" in entry:
            return entry["url"]
        reason = f"NO {service.upper()}: {entry.get('missing', 'still starting')}"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)

    return address


@pytest.fixture(
    params=[
        pytest.param("sqlite", id="sqlite"),
        pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgresql),
    ]
)
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh, migrated database of its own; the test runs once on each dialect."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A fresh, migrated SQLite file."""
    path = tmp_path / "holdfast.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
def postgresql_url(postgresql_slate: "Slate") -> str:
    """An empty, migrated PostgreSQL database that no other test uses meanwhile."""
    return postgresql_slate.wiped()


class Slate:
    """One database of this worker, wiped between tests: making one anew costs ten times as much."""

    def __init__(self, server: str, template: str) -> None:
        self.server = server
        self.template = template
        self.name = f"hf_test_{secrets.token_hex(8)}"
        self.url = _named(server, self.name)
        self.tables: list[str] = []
        # Kept from test to test: a new one costs more than all that is done with it.
        self._janitor: psycopg.Connection | None = None

    def wiped(self) -> str:
        """Its address, with nobody else connected and nothing in it; made anew if the last test broke it."""
        for _ in range(2):  # a test that cut everybody off cut the janitor off as well
            try:
                if self._janitor is None or self._janitor.closed:
                    self._janitor = psycopg.connect(self.url, autocommit=True)
                self._janitor.execute(END_OTHERS)
                if not self.tables or self._tables(self._janitor) != self.tables:
                    break
                self._wipe(self._janitor)
            except psycopg.Error:
                self._dismiss()
            else:
                return self.url
        return self._made_anew()

    def _made_anew(self) -> str:
        self.drop()
        _execute(self.server, f'CREATE DATABASE "{self.name}" TEMPLATE "{self.template}"')
        self._janitor = psycopg.connect(self.url, autocommit=True)
        self.tables = self._tables(self._janitor)
        return self.url

    def _dismiss(self) -> None:
        if self._janitor is not None:
            self._janitor.close()
        self._janitor = None

    def drop(self) -> None:
        """It is gone, with whoever is still connected."""
        self._dismiss()
        _execute(self.server, f'DROP DATABASE IF EXISTS "{self.name}" WITH (FORCE)')

    @staticmethod
    def _tables(connection: psycopg.Connection) -> list[str]:
        # Columns and revision too, so that a test of migrations cannot leave another shape behind.
        result = connection.execute(
            "SELECT table_name || '.' || column_name FROM information_schema.columns"
            " WHERE table_schema = 'public'"
            " UNION ALL SELECT version_num FROM holdfast_version ORDER BY 1"
        )
        return [row[0] for row in result]

    @staticmethod
    def _wipe(connection: psycopg.Connection) -> None:
        result = connection.execute(
            "SELECT relname, pg_relation_size(oid) FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'holdfast_version'"
        ).fetchall()
        emptied = [
            f'TRUNCATE "{name}" CASCADE' if size > 1_000_000 else f'DELETE FROM "{name}"'
            for name, size in result
        ]
        with connection.transaction():
            connection.execute("SET LOCAL session_replication_role = replica")  # no foreign keys while wiping
            connection.execute("; ".join(emptied))
            connection.execute("SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'")


END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="session")
def postgresql_slate(require: Callable[[str], str], postgresql_template: str) -> Iterator[Slate]:
    """The database that this worker's tests use one after another."""
    slate = Slate(require("postgresql"), postgresql_template)
    yield slate
    slate.drop()


@pytest.fixture(scope="session")
def _kept() -> Iterator[None]:
    """What is the same for every database that a test opens is made once."""
    from tests import session_cache  # noqa: PLC0415  tests without a database must not need it

    with session_cache.once():
        yield


@pytest.fixture(scope="session")
def sqlite_template(_kept: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy, with nothing left in its write-ahead log."""
    from holdfast.store.base import migrate  # noqa: PLC0415  tests without a database must not need it

    path = tmp_path_factory.mktemp("template") / "holdfast.db"
    migrate.upgrade(f"sqlite:///{path}")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture(scope="session")
def postgresql_template(_kept: None, require: Callable[[str], str], worker_id: str) -> Iterator[str]:
    """The name of a migrated PostgreSQL database to copy: one per worker, for copying bears no visitor."""
    from holdfast.store.base import migrate  # noqa: PLC0415  as above

    server = require("postgresql")
    name = f"hf_template_{worker_id}_{secrets.token_hex(4)}"
    _execute(server, f'CREATE DATABASE "{name}"')
    try:
        migrate.upgrade(_named(server, name))
        yield name
    finally:
        _execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def redis_url(require: Callable[[str], str], worker_id: str) -> str:
    """An empty Redis database that no other worker of this run uses."""
    number = 0 if worker_id == "master" else 1 + int(worker_id.removeprefix("gw"))
    url = f"{require('redis')}/{number}"
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


def _named(server: str, database: str) -> str:
    return urlsplit(server)._replace(path=f"/{database}").geturl()


def _execute(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement)
