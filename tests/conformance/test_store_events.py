"""The journal by the page: nothing appears before what was handed out, however late it is committed."""

import pytest
from sqlalchemy import event, insert, text

from holdfast.chaos.waiting import until
from holdfast.core.states import Verb
from holdfast.store.base import dialect, journal
from holdfast.store.base.schema import heads
from holdfast.store.base.schema import journal as table
from holdfast.store.features import open_database
from holdfast.store.views import dashboard, event_counts, events
from holdfast.store.views.events import BEGINNING, Position

MANY = 100_000


def note(tx, reason, tenant="default"):
    journal.write(tx, journal.entry(Verb.REQUEST, reason, tenant=tenant, head_id=1))


def noted(db, reason, tenant="default"):
    db.write("note", lambda tx: note(tx, reason, tenant))


@pytest.fixture
def db(database_url):
    created = open_database(database_url)
    yield created
    created.close()


@pytest.fixture
def late(db):
    """A transaction that has written to the journal and is still open; called, it is committed."""
    if not db.postgresql:
        pytest.skip("SQLite has one writer: nobody writes beside an open transaction")
    connection = db.engine.connect().execution_options(**dialect.WRITE)
    transaction = connection.begin()
    row = {"at": 1.0, "tenant": "default", "verb": "request", "reason": "late", "head_id": 1}
    connection.execute(insert(table), row)

    def commit():
        transaction.commit()

    yield commit
    transaction.close()
    connection.close()


def reasons(found):
    return [each.reason for each in found]


def settled(db, number):
    """So many entries, once they are settled: any open transaction of the server holds younger ones back."""
    until(lambda: len(events.page(db, "default")) == number, 30, f"{number} entries are settled")
    return events.page(db, "default")


def test_an_entry_that_is_committed_late_is_missed_by_nobody(db, late):
    """Entries after it wait for it, for however long; then all come, and none twice."""
    noted(db, "after")
    assert events.page(db, "default") == ()
    assert events.of_head(db, 1) == ()
    assert events.latest(db) == BEGINNING
    assert event_counts.since(db, event_counts.CountPosition()).decisions == {}
    position = event_counts.here(db)
    late()
    settled(db, 2)
    first = events.page(db, "default", limit=1)
    rest = events.page(db, "default", after=first[-1].position)
    assert reasons(first + rest) == reasons(events.of_head(db, 1)) == ["late", "after"]
    assert sum(event_counts.since(db, position).decisions.values()) == 2


def test_a_lower_number_of_a_later_transaction_is_not_skipped(db, late):
    """The order is that of transactions: the number alone would put it before what was handed out."""
    noted(db, "after")
    late()
    seen = settled(db, 2)
    older = db.engine.connect()
    with older.begin():
        older.execute(text("SELECT pg_current_xact_id()"))  # it has its number before the other begins
        noted(db, "other")
        assert events.page(db, "default", after=seen[-1].position) == ()
        older.execute(insert(table), {"at": 1.0, "tenant": "default", "verb": "request", "reason": "older"})
    older.close()
    settled(db, 4)
    result = events.page(db, "default", after=seen[-1].position)
    assert reasons(result) == ["older", "other"]
    assert result[0].id > result[1].id


def test_who_begins_now_is_told_of_nothing_that_could_be_seen(db, late):
    """What was committed and is not settled yet is known by its number."""
    noted(db, "after")
    position, visible = events.here(db)
    late()
    settled(db, 2)
    result = events.page(db, "default", after=position)
    assert [each.reason for each in result if each.id not in visible] == ["late"]


def test_a_place_is_found_by_its_number_alone(db):
    """As older releases wrote it; and by what another server called it, before the database came here."""
    for number in range(3):
        noted(db, f"n{number}")
    result = settled(db, 3)
    assert events.known(db, None, result[1].id) == result[1].position
    assert events.known(db, *result[1].position) == result[1].position
    assert events.known(db, None, 0) == BEGINNING
    if db.postgresql:
        assert events.known(db, 10**17, result[1].id) == result[1].position
    assert reasons(events.page(db, "default", after=events.known(db, None, result[1].id))) == ["n2"]


def test_entries_of_another_server_come_first(db):
    """A restored database carries transaction numbers that this server will give out again."""
    noted(db, "old")
    if db.postgresql:
        db.write("restored", lambda tx: tx.execute(table.update().values(xid=10**17)))
        assert events.page(db, "default") == ()
    events.adopt(db)
    noted(db, "new")
    assert reasons(settled(db, 2)) == ["old", "new"]
    events.adopt(db)
    assert (events.page(db, "default")[1].xid > 0) is db.postgresql


def plan(db, statement, values):
    """How the database would carry this out, in its own words."""
    sent = []

    def catch(_connection, _cursor, words, parameters, *_):
        sent.append((words, parameters))

    with db.engine.connect() as connection:
        event.listen(db.engine, "before_cursor_execute", catch)
        connection.execute(statement, values).all()
        event.remove(db.engine, "before_cursor_execute", catch)
        words, parameters = sent[-1]
        how = "EXPLAIN" if db.postgresql else "EXPLAIN QUERY PLAN"
        return str(connection.exec_driver_sql(f"{how} {words}", parameters).all())


PLACE = {"after_xid": 5, "after_id": 5, "limit": 100}
READS = {
    "page": (events.PAGE, {"tenant": "t1", **PLACE}, "holdfast_journal_tenant"),
    "head": (events.OF_HEAD, {"head_id": 7, **PLACE}, "holdfast_journal_head"),
    "latest": (events.LATEST, {}, "holdfast_journal_order"),
    "unsettled": (events.UNSETTLED, {}, "holdfast_journal_order"),
    "watch": (
        events.OF_TENANTS,
        {"tenants": ["t1"], "until_xid": 9, "until_id": 9, **PLACE},
        "holdfast_journal_",
    ),
    "metrics": (
        event_counts.LAST_ENTRY,
        {"entry_xid": 5, "entry_id": 99_000, "most": 100},
        "holdfast_journal_order",
    ),
    "refused": (
        dashboard.REFUSED,
        {"tenant": "t1", "floor_xid": 0, "floor_id": 80_000, "limit": 20},
        "holdfast_journal_tenant",
    ),
}


def test_reading_a_long_journal_uses_its_indexes(db):
    """100,000 entries of 100 tenants: no statement of the stream, the pages or the metrics scans them."""
    rows = [
        {"at": 1.0, "tenant": f"t{number % 100}", "verb": "request", "reason": "x", "head_id": number % 5000}
        for number in range(MANY)
    ]
    with db.engine.begin() as connection:
        connection.execute(insert(table), rows)
    with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    for name, (statement, values, index) in READS.items():
        output = plan(db, statement, values)
        # SQLite has one writer: what comes after a place comes after its number.
        assert index in output or "PRIMARY KEY (rowid>?" in output, (name, output)
        assert "Seq Scan on journal" not in output, (name, output)
        assert name in {"latest", "unsettled"} or db.postgresql or "id>?" in output, (name, output)
    assert events.latest(db) > Position()


def test_the_page_of_a_quiet_collection_looks_through_so_many_entries_and_goes_on(db):
    """Whoever follows `next` comes to every entry, past any number of others'; the end is where it stays."""
    row = {"at": 1.0, "tenant": "default", "verb": "request", "reason": "", "xid": int(db.postgresql)}
    head = {"tenant": "default", "kind": "index", "subject": "document:1", "collection": "quiet"}
    head |= {"generation": 1, "status": "idle", "fingerprint": "", "updated_at": 1.0}
    with db.engine.begin() as connection:
        number = connection.execute(insert(heads).returning(heads.c.id), head).scalar_one()
        connection.execute(insert(table), [row] * (events.LOOKED_THROUGH + 1))
        connection.execute(insert(table), row | {"head_id": number, "reason": "late"})
    read, end = events.page_of_collection(db, "default", "quiet")
    assert read == ()
    assert end > BEGINNING
    read, end = events.page_of_collection(db, "default", "quiet", after=end)
    assert reasons(read) == ["late"]
    assert events.page_of_collection(db, "default", "quiet", after=end) == ((), end)
