"""The database that holds what was paid: PostgreSQL by its settings, SQLite by its file."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, exc, text
from sqlalchemy.pool import NullPool

from holdfast.core.errors import HoldfastError
from holdfast.doctor import redaction
from holdfast.doctor.facts import DatabaseFacts
from holdfast.store.base import dialect, revisions

PATIENCE = 5
NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "ceph",
        "glusterfs",
        "lustre",
        "afs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.glusterfs",
        "fuse.cephfs",
        "fuse.rclone",
        "virtiofs",
        "ncpfs",
    }
)
SETTINGS = text(
    "SELECT current_setting('server_version'), current_setting('fsync'), "
    "current_setting('synchronous_commit'), current_setting('full_page_writes'), "
    "extract(epoch FROM clock_timestamp())"
)
OWN_PROCESS = text("SELECT pg_backend_pid()")
# Other clients that hold a session each: a pooler in transaction mode then has to use another one.
OTHERS = 3


def probe(
    url: str,
    of: str = "Holdfast",
    *,
    lease: float | None = None,
    session_features: tuple[str, ...] = (),
    synchronous: str | None = "FULL",
    now: Callable[[], float] = time.time,
) -> DatabaseFacts:
    """The facts about the database, or why there are none.

    `synchronous` is what the application sets on every connection to SQLite: it is not stored in the file.
    """
    facts = DatabaseFacts(redaction.endpoint(url), of, lease=lease, session_features=session_features)
    try:
        facts = replace(facts, needed_revision=revisions.known())
        file = dialect.sqlite_file(url)
        if file is not None:
            return _of_file(facts, file, synchronous)
        return _of_server(facts, url, now)
    except HoldfastError as error:
        return replace(facts, error=redaction.text(error.message))
    except (exc.SQLAlchemyError, OSError, ImportError) as error:
        reason = str(getattr(error, "orig", None) or error)
        return replace(facts, error=redaction.text(f"it does not answer: {reason}"))


def _of_file(facts: DatabaseFacts, file: Path, synchronous: str | None) -> DatabaseFacts:
    system = file_system(file)
    facts = replace(
        facts,
        sqlite_synchronous=synchronous,
        file_system=system,
        network_file_system=None if system is None else system in NETWORK,
    )
    if not file.exists():
        return facts
    # A reader of a write-ahead log makes the files of that log, unless it is told that nobody writes. Where
    # the log is there already, somebody may, and nothing is made.
    unused = "" if file.with_name(f"{file.name}-wal").exists() else "&immutable=1"
    engine = create_engine(f"sqlite:///file:{file}?mode=ro{unused}&uri=true", poolclass=NullPool)
    try:
        return replace(facts, revision=_revision(engine))
    finally:
        engine.dispose()


def _of_server(facts: DatabaseFacts, url: str, now: Callable[[], float]) -> DatabaseFacts:
    engine = create_engine(
        dialect.parse(url),
        poolclass=NullPool,
        connect_args={"connect_timeout": PATIENCE, "application_name": "holdfast-doctor"},
    )
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            before = now()
            version, fsync, commit, pages, seconds = connection.execute(SETTINGS).one()
            difference = (before + now()) / 2 - float(seconds)
        return replace(
            facts,
            version=str(version),
            fsync=fsync == "on",
            synchronous_commit=str(commit),
            full_page_writes=pages == "on",
            clock_difference=difference,
            revision=_revision(engine),
            pooler=_pooler(engine),
        )
    finally:
        engine.dispose()


def _revision(engine: Engine) -> str | None:
    return revisions.current(engine)


def _pooler(engine: Engine) -> str | None:
    """none, session or transaction: whether sessions are those of the server, and stay the same.

    A pooler makes up the process id that it greets a client with. In transaction mode a client whose session
    is meanwhile used by another one gets another session: its process id changes.
    """
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        driver: Any = connection.connection.driver_connection
        greeted = getattr(getattr(driver, "info", None), "backend_pid", None)
        first = connection.execute(OWN_PROCESS).scalar()
        if greeted is not None and greeted == first:
            return "none"
        for _ in range(OTHERS):
            with engine.connect() as other:  # its transaction holds a session until it ends
                other.execute(OWN_PROCESS)
                if connection.execute(OWN_PROCESS).scalar() != first:
                    return "transaction"
    return "session"


def file_system(path: Path) -> str | None:
    """The type of the file system that a file is on, or will be; None where that cannot be told."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    target, best, system = path.expanduser().absolute(), -1, None
    for line in mounts:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = Path(fields[4].replace("\\040", " "))
        if target.is_relative_to(point) and len(point.parts) >= best:
            best, system = len(point.parts), right.split()[0]
    return system
