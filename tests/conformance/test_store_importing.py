"""Import: documents of another system become heads, without touching what is here or there."""

import pytest
from sqlalchemy import create_engine, delete, select, text, update

from holdfast.core.errors import BadRequestError
from holdfast.core.states import Disposition, Status
from holdfast.store.base import dialect
from holdfast.store.base.schema import collections, documents, heads, journal, runs
from holdfast.store.library import imports
from holdfast.store.protocol import requests
from holdfast.store.views import reads

GIVEN = [(1, True), (2, False), ("c-3", None), (4, "t"), (5, 0)]


def bring_in(world, given=GIVEN, **changes):
    return imports.import_documents(world.db, given, tenant="default", **changes)


def test_active_documents_become_ready_and_the_others_not_indexed(world):
    """Active: generation 1, published, marked imported. Any other: idle, nothing asked yet."""
    assert bring_in(world, collection="books") == imports.Imported(active=2, idle=3)
    head = world.head("document:1")
    assert (head.status, head.generation, head.published_generation) == (Status.SUCCESS, 1, 1)
    assert (head.visible, head.collection, head.fingerprint) == (True, "books", "")
    assert world.row(select(heads.c.imported).where(heads.c.id == head.id)).imported
    idle = world.head("document:c-3")
    assert (idle.status, idle.generation, idle.visible, idle.run_id) == (Status.IDLE, 0, False, None)
    assert world.row(select(collections.c.publish_seq)).publish_seq == 1


def test_an_imported_run_says_so(world):
    """The run is a success that was imported, and the journal has a row for each head."""
    bring_in(world)
    run = reads.run(world.db, world.head("document:4").run_id)
    assert (run.run.status, run.run.disposition, run.reason) == (
        Status.SUCCESS,
        Disposition.ACCEPTED,
        "imported",
    )
    assert world.count(journal, journal.c.verb == "import") == 5
    assert world.count(runs) == 2


def test_an_import_may_be_run_again_and_leaves_existing_heads_alone(world):
    """What is worked on here is not touched, and nothing is made twice."""
    claim = world.start(subject="document:2")
    assert bring_in(world) == imports.Imported(active=2, idle=2, existing=1)
    assert bring_in(world) == imports.Imported(existing=5)
    assert world.head("document:2").run_id == claim.run_id


def test_an_imported_document_is_indexed_when_somebody_asks(world):
    """Its content here is not known, so a request makes generation 2 and the import mark goes."""
    bring_in(world)
    claim = world.publish(subject="document:1")
    assert claim.generation == 2
    assert not world.row(select(heads.c.imported).where(heads.c.id == claim.head_id)).imported


def test_heads_of_an_older_import_become_documents_but_deleted_ones_stay_deleted(world):
    """Run again, an import gives them the rows that they lack, in its collection."""
    bring_in(world, collection="books")
    requests.delete(world.db, "default", "document:2")
    with world.db.engine.begin() as connection:
        connection.execute(delete(documents))
        connection.execute(update(heads).values(collection=None))
    assert bring_in(world, collection="books") == imports.Imported(existing=5)
    assert world.count(documents) == 4
    assert (world.head("document:1").collection, world.head("document:1").generation) == ("books", 1)


def test_large_imports_go_in_batches_and_doubles_count_once(world, monkeypatch):
    """A batch per transaction; an id that comes twice has one head, decided by the first."""
    monkeypatch.setattr(imports, "BATCH", 3)
    items = [*((number, number % 2) for number in range(7)), (1, False)]
    assert bring_in(world, items) == imports.Imported(active=3, idle=4, existing=1)
    assert world.head("document:1").visible


def test_an_id_that_no_subject_can_carry_is_refused_before_its_batch_is_written(world):
    """The message names it."""
    with pytest.raises(BadRequestError, match="document:a b") as refused:
        bring_in(world, [(1, True), ("a b", True)])
    assert refused.value.code == "bad_subject"
    assert world.count(heads) == 0


@pytest.fixture
def theirs(database_url):
    """The plain table of somebody else's system, next to ours."""
    engine = create_engine(dialect.parse(database_url))
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE papers (id INTEGER, is_active BOOLEAN)"))
        connection.execute(text("INSERT INTO papers VALUES (1, true), (2, false), (3, NULL)"))
    engine.dispose()
    return database_url


def test_documents_are_read_from_a_plain_table(theirs):
    """(id, is_active) of every row."""
    assert sorted((row[0], bool(row[1])) for row in imports.read_documents(theirs, "papers")) == [
        (1, True),
        (2, False),
        (3, False),
    ]


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ({"table_name": "novels"}, "table_missing"),
        ({"id_column": "key"}, "column_missing"),
        ({"active_column": "live"}, "column_missing"),
        ({"table_name": 'documents"; DROP TABLE documents; --'}, "bad_identifier"),
        ({"id_column": "id, secret"}, "bad_identifier"),
        ({"table_name": "a.b.c"}, "bad_identifier"),
    ],
)
def test_a_wrong_name_is_refused_with_its_code(theirs, names, code):
    """Missing tables and columns say what there is; names that are no names never reach the database."""
    with pytest.raises(BadRequestError) as refused:
        list(imports.read_documents(theirs, **{"table_name": "papers"} | names))
    assert refused.value.code == code


def test_a_schema_may_be_named(theirs):
    """`main` on SQLite, `public` on PostgreSQL."""
    schema = "public" if theirs.startswith("postgresql") else "main"
    assert len(list(imports.read_documents(theirs, f"{schema}.papers"))) == 3


@pytest.mark.parametrize("url", ["sqlite:////nowhere/at/all.db", "postgresql://nobody@127.0.0.1:1/none"])
def test_a_database_that_cannot_be_read_is_refused(url):
    """Nothing is created in its place."""
    with pytest.raises(BadRequestError) as refused:
        list(imports.read_documents(url))
    assert refused.value.code == "import_unreadable"


def test_an_unsupported_database_is_refused():
    """The message names those that are supported."""
    with pytest.raises(BadRequestError, match="sqlite:///path"):
        list(imports.read_documents("oracle://somewhere"))
