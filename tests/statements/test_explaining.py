"""The explainer sees what it is there for, and the recorder what processes of their own send."""

import os
import subprocess
import sys

import pytest
from sqlalchemy import text

from holdfast.store.features import open_database
from tests.statements import explaining, growing, recording
from tests.statements.exceptions import Allowed
from tests.statements.explaining import Fault


@pytest.fixture
def grown(database_url):
    """A database with enough rows that reading all of them is no plan for any statement but a bad one."""
    db = open_database(database_url)
    growing.grow(db, 20_000)
    yield db
    db.close()


def faults(db, statement, *values):
    """What is wrong with a statement."""
    dialect = "postgresql" if db.postgresql else "sqlite"
    return [
        each.text for each in explaining.faults(db, recording.Sent(dialect, statement, "test.test", values))
    ]


@pytest.mark.g7
def test_a_condition_that_lost_its_correlation_is_caught(grown):
    """The look for missing vectors as it once was: a table of its own in the innermost condition.

    SQLite, with the statistics that it has now, finds a way around that one; around a lost join it does not.
    """
    mended = explaining.MUTANT.replace("calls, holdfast_heads h", "calls").replace("h.tenant", "page.tenant")
    assert bool(faults(grown, explaining.MUTANT)) == grown.postgresql
    assert not faults(grown, mended.replace("page.id AND NOT", "page.id AND c.position = 7 AND NOT"))
    assert all(faults(grown, bad) for bad in explaining.KNOWN_BAD)


def test_what_is_read_from_end_to_end_is_caught(grown):
    """By number or along an index, under another name, inside a condition; a page of rows is none of it."""
    assert faults(grown, "SELECT count(*) FROM holdfast_tasks AS t WHERE t.done = 7")
    assert faults(grown, "SELECT EXISTS (SELECT 1 FROM holdfast_calls WHERE holdfast_calls.tokens = 7)")
    assert faults(grown, "UPDATE holdfast_runs SET pruned = true WHERE content = 'd7'")
    assert not faults(
        grown, "SELECT id FROM holdfast_journal WHERE tenant = 'default' ORDER BY xid, id LIMIT 100"
    )


def test_a_statement_that_cannot_be_explained_is_caught(grown):
    """A plan that nobody has seen is no good plan, and no exception excuses it."""
    fault = explaining.faults(grown, recording.Sent("", "SELECT nothing FROM nowhere", "test.test", ()))
    assert "cannot be explained" in fault[0].text
    assert not Allowed("any", "anybody", ("nowhere",), times=1e9).covers(fault)


def test_an_exception_excuses_what_it_names_and_no_more():
    """Another table, or a higher price than was allowed, is as bad as without it."""
    adds_up = Allowed("adds up", "a person", ("charges",))
    assert adds_up.covers([Fault("reads all of charges", "charges"), Fault("cost 9000", times=6.0)])
    assert not adds_up.covers([Fault("reads all of heads", "heads")])
    assert not adds_up.covers([Fault("multiplies two tables")])
    assert not Allowed("looks at 200", "the sweep", times=5).covers([Fault("cost 9000", times=6.0)])
    here = Allowed("looks at 200", "the sweep", times=9, dialect="postgresql")
    assert here.covers([Fault("cost 9000", times=6.0)], "postgresql")
    assert not here.covers([Fault("190000 steps", times=1.3)], "sqlite")


def test_what_a_process_of_its_own_sends_is_recorded(sqlite_url, tmp_path):
    """A command that a test starts tells its statements, with their callers."""
    env = os.environ | recording.environment(tmp_path / "sent") | {"HOLDFAST_DATABASE_URL": sqlite_url}
    words = [sys.executable, "-P", "-m", "holdfast.cli", "status"]
    subprocess.run(words, env=env, check=True, capture_output=True, timeout=60)
    sent = recording.load(tmp_path / "sent")
    assert {"reads.lanes", "billing.bill"} <= {each.caller for each in sent}
    assert {each.dialect for each in sent} == {"sqlite"}


def test_every_index_of_a_table_that_grows_has_its_statistics(sqlite_url):
    """Otherwise SQLite would guess; `python -m tests.statements --statistics` prints what is missing."""
    db = open_database(sqlite_url)
    indexes = db.read(
        lambda tx: tx.all(text("SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index'"))
    )
    output = db.read(lambda tx: tx.all(text("SELECT tbl, idx FROM sqlite_stat1")))
    plan = db.read(
        lambda tx: tx.all(
            text(
                "EXPLAIN QUERY PLAN SELECT * FROM holdfast_heads"
                " WHERE tenant = 'default' AND subject = 'document:7' ORDER BY kind"
            )
        )
    )
    db.close()
    assert {tuple(row) for row in indexes if row[0] in growing.BIG} == {tuple(row) for row in output}
    assert "holdfast_heads_subject" in str(plan)
