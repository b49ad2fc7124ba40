"""The migrations build exactly the tables of the schema, and a process meets no other."""

import contextlib
import secrets
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, create_engine, inspect, text

from holdfast import bootstrap
from holdfast.core.errors import BadRequestError, SchemaError
from holdfast.settings import Settings
from holdfast.store.base import dialect, migrate, revisions
from holdfast.store.base.schema import metadata
from holdfast.store.search import vector_tables
from tests.api.install import ApiInstall


@pytest.fixture
def engine(database_url):
    instance = create_engine(dialect.parse(database_url))
    yield instance
    instance.dispose()


def test_models_and_migrations_agree(engine):
    """Autogenerate finds nothing left to write."""
    # SQLite gives the default '' back in another spelling, so defaults are compared on PostgreSQL.
    options = {
        "compare_type": True,
        "compare_server_default": engine.dialect.name == "postgresql",
        "version_table": revisions.VERSION_TABLE,
        # The full-text indexes have no model: one is SQLite's own, the other an expression.
        "include_name": lambda name, kind, parents: (
            not str(name).startswith(("holdfast_chunk_words", "holdfast_chunks_words"))
        ),
    }
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_partial_indexes_and_checks_of_the_models_are_in_the_database(engine):
    """What autogenerate does not compare: the conditions of indexes and the names of checks."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            result = connection.execute(text("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))
        else:
            result = connection.execute(
                text("SELECT indexdef FROM pg_indexes UNION SELECT conname::text FROM pg_constraint")
            )
        said = "\n".join(row[0] for row in result)
    for table in metadata.sorted_tables:
        for rule in (*table.constraints, *table.indexes):
            assert rule.name is None or str(rule.name).endswith("_pk") or str(rule.name) in said
        for index in table.indexes:
            partial = index.dialect_options["sqlite"]["where"] is not None
            line = next(line for line in said.split("\n") if f"INDEX {index.name} ON" in line)
            assert partial == ("WHERE" in line)


def test_the_database_of_this_release_is_accepted(engine):
    """Nothing to say, nothing to run."""
    revisions.check(engine)
    assert revisions.current(engine) == revisions.known()


def test_the_files_of_migrations_are_named_by_their_revisions():
    """The revision that a process needs is read from the names; Alembic, which reads the files, agrees."""
    config = Config()
    config.set_main_option("script_location", str(revisions.SCRIPTS))
    scripts = ScriptDirectory.from_config(config)
    assert revisions.known() == scripts.get_current_head()
    assert set(revisions.revisions()) == {each.revision for each in scripts.walk_revisions()}


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("DELETE FROM holdfast_version", "run: holdfast migrate"),
        ("DROP TABLE holdfast_version", "run: holdfast migrate"),
        ("UPDATE holdfast_version SET version_num = '9999'", "install a newer holdfast"),
    ],
)
def test_a_database_that_is_empty_or_unknown_is_refused_with_what_to_do(engine, statement, advice):
    """A process stops at the door instead of failing somewhere inside."""
    with engine.begin() as connection:
        connection.execute(text(statement))
    with pytest.raises(SchemaError, match=advice):
        revisions.check(engine)


def test_an_older_database_is_refused_with_what_to_run(engine, monkeypatch):
    """The database is at a revision this code knows, but it needs a later one."""
    monkeypatch.setattr(revisions, "known", lambda: "later")
    with pytest.raises(SchemaError, match="needs later; run: holdfast migrate"):
        revisions.check(engine)


LATEST = revisions.known()
NEXT = f"""
revision, down_revision = "9000", "{LATEST}"

def upgrade():
    pass
"""


def test_a_database_is_never_taken_back_to_an_older_revision(database_url, engine, tmp_path, monkeypatch):
    """It is refused with the reason, where it used to do nothing and say that it was done."""
    scripts = tmp_path / "migrations"
    shutil.copytree(revisions.SCRIPTS, scripts)
    (scripts / "versions" / "9000_next.py").write_text(NEXT)
    monkeypatch.setattr(revisions, "SCRIPTS", scripts)
    with undone(engine):
        assert migrate.upgrade(database_url) == "9000"
        with pytest.raises(SchemaError, match=f"newer than {LATEST}, and there is no way back") as refused:
            migrate.upgrade(database_url, LATEST)
        assert "restore a backup" in refused.value.message
        assert revisions.current(engine) == "9000"


@contextlib.contextmanager
def undone(engine):
    """Whatever happens inside, the database says afterwards that it is at the revision of this release."""
    try:
        yield
    finally:
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE holdfast_version SET version_num = '{LATEST}'"))


def test_upgrading_twice_changes_nothing(database_url, engine):
    """Every deploy may run it."""
    assert migrate.upgrade(database_url) == revisions.known()
    revisions.check(engine)


@pytest.fixture
def empty_postgresql(require):
    server, name = require("postgresql"), f"hf_test_{secrets.token_hex(8)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def empty_sqlite(tmp_path):
    return f"sqlite:///{tmp_path / 'new.db'}"


OF_THE_FIRST_RELEASE = """
INSERT INTO holdfast_runs (id, head_id, tenant, kind, subject, generation, status, disposition, reason, actor,
  lane, priority, pipeline, content, options, queued_at)
SELECT :id, id, 'default', 'index', subject, :generation, 'success', 'accepted', '', '', 'bulk', 5, '', '',
  '{}', 1.0 FROM holdfast_heads
"""
HEAD = """
INSERT INTO holdfast_heads (tenant, kind, subject, generation, status, fingerprint, updated_at)
VALUES ('default', 'index', 'document:1', 2, 'success', '', 1.0)
"""


@pytest.mark.parametrize(
    "kind", ["empty_sqlite", pytest.param("empty_postgresql", marks=pytest.mark.postgresql)]
)
def test_phases_are_added_beneath_a_running_release(request, kind):
    """Old rows, and those that the release before still writes, are in the first phase."""
    url = request.getfixturevalue(kind)
    assert migrate.upgrade(url, "0001") == "0001"
    upgraded = create_engine(dialect.parse(url))
    with upgraded.begin() as connection:
        connection.execute(text(HEAD))
        connection.execute(text(OF_THE_FIRST_RELEASE), {"id": "before", "generation": 1})
    migrate.upgrade(url)
    with upgraded.begin() as connection:
        connection.execute(text(OF_THE_FIRST_RELEASE), {"id": "after", "generation": 2})
        recorded = connection.execute(text("SELECT phase FROM holdfast_runs")).scalars().all()
    upgraded.dispose()
    assert recorded == [0, 0]


@pytest.mark.parametrize(
    "kind", ["empty_sqlite", pytest.param("empty_postgresql", marks=pytest.mark.postgresql)]
)
def test_two_processes_may_upgrade_at_once(request, kind):
    """The second waits for the first and finds nothing left to do."""
    url = request.getfixturevalue(kind)
    program = "import sys; from holdfast.store.base import migrate; print(migrate.upgrade(sys.argv[1]))"
    # Real processes: Alembic keeps its context in a global.
    both = [
        subprocess.Popen([sys.executable, "-c", program, url], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [one.communicate(timeout=60)[0].strip() for one in both] == [revisions.known()] * 2


THEIRS = ("orders", "tasks", "documents", "alembic_version")


@pytest.mark.parametrize(
    "kind", ["empty_sqlite", pytest.param("empty_postgresql", marks=pytest.mark.postgresql)]
)
def test_the_database_of_an_application_takes_us_in(request, kind):
    """Its tables keep their names and rows, whatever they are called; ours all begin with holdfast_."""
    url = request.getfixturevalue(kind)
    theirs = create_engine(dialect.parse(url))
    with theirs.begin() as connection:
        for name in THEIRS:
            connection.execute(text(f"CREATE TABLE {name} (id TEXT)"))
            connection.execute(text(f"INSERT INTO {name} VALUES ('theirs')"))
    assert migrate.upgrade(url) == revisions.known()
    names = {*inspect(theirs).get_table_names()} - set(THEIRS)
    assert names
    assert {name for name in names if not name.startswith("holdfast_")} == set()
    for name in names:
        for index in inspect(theirs).get_indexes(name):
            assert index["name"].startswith("holdfast_")
    with theirs.connect() as connection:
        assert [connection.scalar(text(f"SELECT id FROM {name}")) for name in THEIRS] == ["theirs"] * 4
    theirs.dispose()


@pytest.mark.parametrize(
    "kind", ["empty_sqlite", pytest.param("empty_postgresql", marks=pytest.mark.postgresql)]
)
def test_migrations_of_an_application_see_nothing_of_ours(request, kind):
    """With the hook of the how-to its autogenerate finds nothing; without it, it would drop our tables."""
    url = request.getfixturevalue(kind)
    migrate.upgrade(url)
    theirs, own = create_engine(dialect.parse(url)), MetaData()

    def include_name(name, kind, _parents):
        return kind != "table" or not name.startswith("holdfast_")

    with theirs.connect() as connection:
        plain = MigrationContext.configure(connection)
        assert any(change[0] == "remove_table" for change in compare_metadata(plain, own))
        hooked = MigrationContext.configure(connection, opts={"include_name": include_name})
        assert compare_metadata(hooked, own) == []
    theirs.dispose()


def test_a_database_of_a_preview_is_refused_in_one_line_and_left_as_it_is(empty_sqlite):
    """Its tables have no prefix, and no migration leads on from them."""
    theirs = create_engine(empty_sqlite)
    with theirs.begin() as connection:
        for name in ("heads", "word_counts", "journal", "alembic_version"):
            connection.execute(text(f"CREATE TABLE {name} (id TEXT)"))
    with pytest.raises(SchemaError, match="made by a preview of holdfast") as refused:
        migrate.upgrade(empty_sqlite)
    assert "\n" not in refused.value.message
    assert "holdfast_heads" not in inspect(theirs).get_table_names()
    theirs.dispose()


@pytest.mark.postgresql
def test_a_schema_of_its_own_is_made_and_holds_everything(empty_postgresql):
    """Also beside another installation in the usual one, whose tables have the same names."""
    schema = f"{empty_postgresql}?schema=own"
    assert migrate.upgrade(empty_postgresql) == revisions.known()
    own = create_engine(dialect.parse(schema))
    with pytest.raises(SchemaError, match="no Holdfast tables yet"):
        revisions.check(own)
    assert migrate.upgrade(schema) == migrate.upgrade(schema) == revisions.known()
    revisions.check(own)
    shown = inspect(own)
    assert set(shown.get_table_names(schema="own")) == set(shown.get_table_names(schema="public"))
    assert revisions.VERSION_TABLE in shown.get_table_names(schema="own")
    own.dispose()


@pytest.mark.parametrize("name", ["Own", "pg_own", "a-b", "a;b", "a,b"])
def test_the_name_of_a_schema_is_a_plain_one(name):
    """It goes into the options of every connection."""
    with pytest.raises(BadRequestError, match="small letters"):
        dialect.parse(f"postgresql://somebody@host/app?schema={name}")


@pytest.mark.postgresql
def test_api_and_worker_live_in_a_schema_beside_another_installation(empty_postgresql, tmp_path):
    """Uploads, work, search and the tables of pgvector; what lies in the usual schema stays untouched."""
    migrate.upgrade(empty_postgresql)
    with contextlib.ExitStack() as undo:
        houses = []
        for number, schema in enumerate((None, "own")):
            bootstrap.migrated(
                Settings(
                    data_dir=tmp_path / str(number), database_url=empty_postgresql, database_schema=schema
                )
            )
            houses.append(ApiInstall(empty_postgresql, tmp_path / str(number), database_schema=schema))
            undo.callback(houses[-1].close)
        usual, own = houses
        usual.client.indexed("The usual schema has a lighthouse.")
        own.client.indexed("A schema of its own has a harbour.")
        for install, mine, theirs in ((usual, "lighthouse", "harbour"), (own, "harbour", "lighthouse")):
            response = install.client.get(f"search?collection=shelf&q={mine}")
            texts = [hit["text"] for hit in response.json["hits"]]
            assert mine in texts[0]
            assert not any(theirs in text for text in texts)
            vector_tables.prepare(install.runtime.db)
            assert install.runtime.db.read(vector_tables.are_there)
