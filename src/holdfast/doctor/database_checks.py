"""Checks of the databases that hold what was paid: durability, poolers, revision and clock."""

from collections.abc import Iterator

from holdfast.doctor import spans
from holdfast.doctor.facts import DatabaseFacts, DoctorFacts
from holdfast.doctor.findings import CheckArea, CheckOutcome, Severity, harmless, passed, problem, unknown

area = CheckArea("Database and clocks")

LEASE_SHARE = 0.1


def _reached(facts: DoctorFacts) -> Iterator[tuple[DatabaseFacts, CheckOutcome | None]]:
    for database in facts.databases:
        missing = None if database.error is None else unknown(database.endpoint.shown, database.error)
        yield database, missing


@area.check(
    "P1",
    Severity.ERROR,
    title="The database forgets what it has confirmed",
    why="After a crash or a power cut, commits that were confirmed are missing: charges that were paid are "
    "paid again, and accepted requests are gone.",
    fix="ALTER SYSTEM SET fsync = on; ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();",
    evidence=(
        "https://www.postgresql.org/docs/current/runtime-config-wal.html",
        "https://www.sqlite.org/pragma.html#pragma_synchronous",
        "https://www.sqlite.org/wal.html",
    ),
)
def durability(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """Settings that make a commit less than durable, and SQLite on a network file system."""
    for database, missing in _reached(facts):
        shown = database.endpoint.shown
        off = []
        if database.fsync is False:
            off.append("fsync is off")
        if database.full_page_writes is False:
            off.append("full_page_writes is off")
        if database.synchronous_commit == "off":
            off.append("synchronous_commit is off")
        if database.sqlite_synchronous == "OFF":
            off.append("PRAGMA synchronous is OFF")
        if database.network_file_system:
            where = f"the file is on {database.file_system}, a network file system"
            move = "HOLDFAST_DATA_DIR=/var/lib/holdfast   # a local disk; for several machines: PostgreSQL"
            yield problem(shown, where, move)
        elif off:
            fix = "PRAGMA synchronous = FULL" if database.sqlite_synchronous else ""
            yield problem(shown, " and ".join(off), fix)
        elif missing is not None:
            yield missing
        elif database.fsync is None and database.file_system is None:
            yield unknown(shown, "its settings")
        else:
            yield passed(shown, "confirmed commits survive a crash")


@area.check(
    "P2",
    Severity.WARNING,
    title="Session features behind a transaction-mode pooler",
    why="A pooler in transaction mode gives every transaction another session. What lives in a session "
    "(prepared statements, a search path, locks) is then found missing, or belongs to somebody else.",
    fix="HOLDFAST_DATABASE_PREPARE=false       # and set the schema for the role instead:\n"
    "ALTER ROLE holdfast SET search_path = holdfast",
    evidence=(
        "https://www.pgbouncer.org/features.html",
        "docs/decisions/0007-prepared-statements-are-off.md",
    ),
)
def pooler(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """A transaction-mode pooler, and settings that use sessions."""
    for database, missing in _reached(facts):
        shown = database.endpoint.shown
        if database.endpoint.kind != "postgresql":
            continue
        if missing is not None or database.pooler is None:
            yield missing or unknown(shown, "whether a pooler is in between")
        elif database.pooler != "transaction":
            said = "no pooler" if database.pooler == "none" else f"a pooler in {database.pooler} mode"
            yield passed(shown, said)
        elif database.session_features:
            yield problem(
                shown, f"a pooler in transaction mode, with {' and '.join(database.session_features)}"
            )
        else:
            reason = "no statement of Holdfast needs a session, with the settings as they are"
            yield harmless(shown, "a pooler in transaction mode", reason)


@area.check(
    "P3",
    Severity.WARNING,
    title="The database is at another revision than the code",
    why="Processes of this release do not start until the database has its tables.",
    fix="holdfast migrate",
    evidence=("docs/how-to/share-a-database.md",),
)
def revision(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The revision of the tables against that of the code."""
    for database, missing in _reached(facts):
        shown = database.endpoint.shown
        if missing is not None:
            yield missing
        elif database.needed_revision is None:
            yield unknown(shown, "the revision that the code needs")
        elif database.revision == database.needed_revision:
            yield passed(shown, f"revision {database.revision}")
        elif database.endpoint.kind == "sqlite" and database.of != "Holdfast":
            yield passed(shown, "the guard creates and migrates its file when it is first used")
        elif database.revision is None:
            yield problem(shown, "it has no tables of Holdfast yet")
        else:
            yield problem(shown, f"revision {database.revision}; this code needs {database.needed_revision}")


@area.check(
    "T1",
    Severity.WARNING,
    title="This clock and that of the database differ",
    why="Leases are judged by the clock of the database. A worker whose own clock is apart from it shows "
    "wrong times, and what stops by local time stops too early or too late.",
    fix="timedatectl set-ntp true              # on every machine",
    evidence=("docs/decisions/0005-the-clock-is-the-start-of-the-statement.md",),
)
def clock(facts: DoctorFacts) -> Iterator[CheckOutcome]:
    """The difference of the clocks against the time of a lease."""
    for database, missing in _reached(facts):
        shown = database.endpoint.shown
        if database.endpoint.kind == "sqlite":
            yield passed(shown, "SQLite uses the clock of this machine")
        elif missing is not None or database.clock_difference is None:
            yield missing or unknown(shown, "the clock of the database")
        else:
            lease = database.lease or 12.0
            difference = abs(database.clock_difference)
            said = f"the clocks differ by {spans.span(round(difference, 2))}"
            if difference > LEASE_SHARE * lease:
                yield problem(shown, f"{said}, with a lease of {spans.span(lease)}")
            else:
                yield passed(shown, said)
