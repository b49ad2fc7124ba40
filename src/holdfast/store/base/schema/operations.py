"""The tables for operating an installation: its duties, its workers and its blob store."""

from sqlalchemy import JSON, BigInteger, CheckConstraint, Column, Double, Index, Integer, Table, Text

from holdfast.store.base.schema.metadata import metadata

# A duty of the sweep: when it is due next, and when it last ran.
duties = Table(
    "holdfast_duties",
    metadata,
    Column("name", Text, primary_key=True),
    Column("next_at", Double, nullable=False, server_default="0"),
    Column("last_at", Double, nullable=False, server_default="0"),
    Column("grace_until", Double, nullable=False, server_default="0"),
    # Its health, for people: its interval, when it was registered, its last success and failure.
    Column("every", Double, nullable=False, server_default="0"),
    Column("enrolled_at", Double, nullable=False, server_default="0"),
    Column("succeeded_at", Double, nullable=False, server_default="0"),
    Column("failed_at", Double, nullable=False, server_default="0"),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("error", Text, nullable=False, server_default=""),
)

# What a worker reports about itself every few seconds. Nothing depends on it: a row may be late or lost.
workers = Table(
    "holdfast_workers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Column("broker", Text, nullable=False),
    Column("health", Text, nullable=False),
    Column("lanes", JSON, nullable=False),
    Column("pipelines", JSON, nullable=False),
    Column("processes", Integer, nullable=False),
    Column("busy", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("counts", JSON, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Index("holdfast_workers_seen", "seen_at"),
)

# The store that holds the bytes of the documents has the same id: a process that sees another id is in the
# wrong folder, where every document would be missing.
installation = Table(
    "holdfast_installation",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("blobs_id", Text, nullable=False),
    CheckConstraint("id = 1", name="holdfast_one_installation_per_database"),
)
