"""The table of the journal."""

from sqlalchemy import JSON, BigInteger, Column, Double, Index, Table, Text

from holdfast.store.base.journal_order import own_transaction
from holdfast.store.base.schema.metadata import Id, metadata, where

journal = Table(
    "holdfast_journal",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("verb", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("head_id", BigInteger),
    Column("run_id", Text),
    Column("task_id", BigInteger),
    Column("generation", BigInteger),
    Column("epoch", BigInteger),
    Column("actor", Text),
    Column("data", JSON(none_as_null=True)),
    # The transaction that wrote the row, from PostgreSQL; 0 on SQLite, which has one writer. Entries are read
    # in the order of (xid, id): `id` alone is not the order in which they become visible.
    Column("xid", BigInteger, nullable=False, server_default=own_transaction()),
    Index("holdfast_journal_order", "xid", "id"),
    Index("holdfast_journal_head", "head_id", "xid", "id"),
    Index("holdfast_journal_tenant", "tenant", "xid", "id"),
    Index(
        "holdfast_journal_duplicates",
        "tenant",
        "at",
        **where("reason = 'duplicate:in_progress'"),
    ),
    Index(
        "holdfast_journal_budgets",
        "tenant",
        "id",
        **where("verb = 'set_budget'"),
    ),
    sqlite_autoincrement=True,
)
