"""The tables. Constraints are named for the promise they keep.

Times are seconds since 1970 by the database clock (double precision). Money is in nano-dollars. States are
text from `core.states`; statements spell them as literals, because neither database uses a partial index
when the state is a bound parameter.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from holdfast.core.states import LIVE, UNSETTLED, CallState, Status, TaskState
from holdfast.store.journal_order import own_transaction

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite gives a rowid to INTEGER PRIMARY KEY only; PostgreSQL wants 64 bits.
Id = BigInteger().with_variant(Integer, "sqlite")

# Compared byte by byte, for ranges of it are read: a language's order may skip punctuation, and then
# "document:4/…" would cover "document:42/…".
Bytewise = Text().with_variant(Text(collation="C"), "postgresql")


def one_of(column: str, states: object) -> str:
    """SQL that tests `column` against literal states, sorted so that the text is stable."""
    names = ", ".join(f"'{state}'" for state in sorted(str(state) for state in states))  # type: ignore[attr-defined]
    return f"{column} IN ({names})"


heads = Table(
    "heads",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Bytewise, nullable=False),
    Column("collection", Text),
    Column("generation", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("run_id", Text),
    Column("fingerprint", Text, nullable=False),
    Column("published_generation", BigInteger, nullable=False, server_default="0"),
    Column("visible", Boolean, nullable=False, server_default=text("false")),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Column("imported", Boolean, nullable=False, server_default=text("false")),
    Column("updated_at", Double, nullable=False),
    UniqueConstraint("tenant", "kind", "subject", name="g1_one_head_per_kind_and_subject"),
    CheckConstraint("published_generation <= generation", name="g3_published_is_never_ahead_of_requested"),
    CheckConstraint(one_of("status", Status), name="head_status_is_known"),
    Index("ix_heads_collection", "tenant", "collection", "id"),
    Index("ix_heads_subject", "tenant", "subject"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("head_id", ForeignKey("heads.id"), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("disposition", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("options", JSON, nullable=False),
    # The trace that the request belonged to, as W3C writes it; no part of what is done.
    Column("trace", Text),
    Column("slices", Integer),
    Column("queued_at", Double, nullable=False),
    Column("started_at", Double),
    Column("finished_at", Double),
    Column("error_code", Text),
    Column("error_message", Text),
    Column("result", JSON(none_as_null=True)),
    # Whom to tell when it ends: {url, secret}.
    Column("callback", JSON(none_as_null=True)),
    # `pruned`: the chunks that this run's end made superfluous are gone. `past`: a later run took its place.
    Column("pruned", Boolean, nullable=False, server_default=text("false")),
    Column("past", Boolean, nullable=False, server_default=text("false")),
    UniqueConstraint("head_id", "generation", name="g1_one_run_per_generation"),
    CheckConstraint(one_of("status", Status), name="run_status_is_known"),
    Index(
        "g1_one_live_run_per_head",
        "head_id",
        unique=True,
        sqlite_where=text(one_of("status", LIVE)),
        postgresql_where=text(one_of("status", LIVE)),
    ),
    Index(
        "ix_runs_running",
        "head_id",
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
    Index("ix_runs_finished", "finished_at"),
    Index(
        "ix_runs_unpruned",
        "finished_at",
        sqlite_where=text("finished_at IS NOT NULL AND NOT pruned"),
        postgresql_where=text("finished_at IS NOT NULL AND NOT pruned"),
    ),
    Index(
        "ix_runs_past",
        "finished_at",
        sqlite_where=text("past"),
        postgresql_where=text("past"),
    ),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("head_id", BigInteger, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("age", Double, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("weight", Integer, nullable=False, server_default="1"),
    Column("state", Text, nullable=False),
    Column("due_at", Double, nullable=False),
    Column("waiting_for", Text),
    Column("epoch", BigInteger, nullable=False, server_default="0"),
    Column("owner", Text),
    Column("token", Text),
    Column("lease_until", Double, nullable=False, server_default="0"),
    Column("claimed_at", Double, nullable=False, server_default="0"),
    Column("signed_at", Double, nullable=False, server_default="0"),
    Column("advanced", Boolean, nullable=False, server_default=text("false")),
    # `carrier`: the process that holds it. `attempts`: deaths of that process alone. `losses`: of its worker.
    Column("carrier", Text),
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("losses", Integer, nullable=False, server_default="0"),
    Column("only_waits", Boolean, nullable=False, server_default=text("false")),
    Column("deferrals", Integer, nullable=False, server_default="0"),
    Column("look_again_at", Double, nullable=False, server_default="0"),
    Column("done", BigInteger, nullable=False, server_default="0"),
    Column("total", BigInteger, nullable=False, server_default="0"),
    Column("unit", Text, nullable=False, server_default=""),
    Column("stages", JSON(none_as_null=True)),
    Column("paid_calls", Integer, nullable=False, server_default="0"),
    # Of the paid calls, those for which no price is known.
    Column("unpriced_calls", Integer, nullable=False, server_default="0"),
    Column("reused_calls", Integer, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("paid", BigInteger, nullable=False, server_default="0"),
    Column("saved", BigInteger, nullable=False, server_default="0"),
    Column("chunks", Integer, nullable=False, server_default="0"),
    Column("result", JSON(none_as_null=True)),
    UniqueConstraint("run_id", "ordinal", name="one_task_per_slice"),
    CheckConstraint(one_of("state", TaskState), name="task_state_is_known"),
    CheckConstraint("epoch >= 0 AND lease_until >= 0", name="g2_epoch_and_lease_are_numbers"),
    Index(
        "ix_tasks_queued",
        "lane",
        "tenant",
        "priority",
        "age",
        "id",
        sqlite_where=text("state = 'queued'"),
        postgresql_where=text("state = 'queued'"),
    ),
    Index(
        "ix_tasks_waiting",
        "due_at",
        sqlite_where=text("state = 'waiting'"),
        postgresql_where=text("state = 'waiting'"),
    ),
    Index(
        "ix_tasks_running",
        "lease_until",
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
    Index(
        "ix_tasks_token",
        "token",
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
    sqlite_autoincrement=True,
)

turns = Table(
    "turns",
    metadata,
    Column("lane", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("last_served", Double, nullable=False, server_default="0"),
    PrimaryKeyConstraint("lane", "tenant", name="one_turn_per_lane_and_tenant"),
)

chunks = Table(
    "chunks",
    metadata,
    # Its own number, for the full-text index of SQLite: a rowid that VACUUM may change would not do.
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("page", Integer),
    Column("text", Text, nullable=False),
    Column("call_key", Text),
    Column("data", JSON(none_as_null=True)),
    # Terms by `search.words`, apart by spaces. Its indexes, chunk_words and ix_chunks_words, are migrations'.
    Column("words", Text),
    UniqueConstraint(
        "head_id", "generation", "slice", "epoch", "position", name="g2_one_chunk_per_place_and_epoch"
    ),
)

# Of each slice: which of its chunks have a term, how often, and how long they are; put together by readers.
word_counts = Table(
    "word_counts",
    metadata,
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    PrimaryKeyConstraint("head_id", "generation", "slice", name="one_count_per_slice"),
)

lines = Table(
    "lines",
    metadata,
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("id", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("text", Text, nullable=False),
    PrimaryKeyConstraint("run_id", "id", name="one_line_per_id"),
)

calls = Table(
    "calls",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("order_id", Text),
    Column("run_id", Text),
    Column("model", Text, nullable=False),
    Column("estimate", BigInteger, nullable=False),
    Column("cost", BigInteger, nullable=False, server_default="0"),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("result", LargeBinary),
    Column("settled_at", Double),
    PrimaryKeyConstraint("tenant", "key", name="g5_one_row_per_paid_input"),
    CheckConstraint(one_of("state", CallState), name="call_state_is_known"),
    CheckConstraint("state <> 'settled' OR result IS NOT NULL", name="g5_a_settled_call_keeps_its_result"),
    Index("ix_calls_order", "order_id"),
)

orders = Table(
    "orders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("call_keys", JSON, nullable=False),
    Column("weights", JSON, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("keyed", Boolean, nullable=False),
    Column("holder", Text, nullable=False),
    Column("carrier", Text),  # the process that sends it; unset by an older release
    Column("task_id", BigInteger),
    Column("run_id", Text),
    Column("scopes", JSON, nullable=False),
    Column("estimate", BigInteger, nullable=False),
    # No price is known for its model: it has no estimate, and its charge no amount.
    Column("unpriced", Boolean, nullable=False, server_default=text("false")),
    Column("doubts", Integer, nullable=False, server_default="0"),
    Column("approved", Boolean, nullable=False, server_default=text("false")),
    Column("send_token", Text),
    Column("created_at", Double, nullable=False),
    Column("first_sent_at", Double),
    Column("sent_at", Double),
    Column("deadline", Double, nullable=False),
    Column("deadline_at", Double, nullable=False),
    Column("sends", Integer, nullable=False, server_default="0"),
    Column("status_code", Integer),
    Column("reason", Text),
    Column("settled_at", Double),
    UniqueConstraint("idempotency_key", name="g5_one_order_per_idempotency_key"),
    CheckConstraint(one_of("state", CallState), name="order_state_is_known"),
    Index(
        "ix_orders_unsettled",
        "state",
        "deadline_at",
        sqlite_where=text(one_of("state", UNSETTLED)),
        postgresql_where=text(one_of("state", UNSETTLED)),
    ),
    # Of its own: SQLite does not see that two of the states above are among the four.
    Index(
        "ix_orders_in_flight",
        "deadline_at",
        sqlite_where=text("state IN ('intent', 'sent')"),
        postgresql_where=text("state IN ('intent', 'sent')"),
    ),
    Index("ix_orders_run", "run_id"),
)

charges = Table(
    "charges",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("order_id", ForeignKey("orders.id"), nullable=False),
    Column("send", Integer, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("run_id", Text),
    Column("model", Text, nullable=False),
    Column("sort", Text, nullable=False),
    Column("cleared", Boolean, nullable=False, server_default=text("false")),
    Column("tokens", BigInteger, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("prices", Text, nullable=False),
    Column("at", Double, nullable=False),
    UniqueConstraint("order_id", "send", "sort", name="g5_one_charge_per_send"),
    CheckConstraint("sort IN ('paid', 'second', 'in_doubt')", name="charge_sort_is_known"),
    Index("ix_charges_tenant", "tenant", "at"),
    Index("ix_charges_run", "run_id"),
    Index(
        "ix_charges_doubts",
        "tenant",
        sqlite_where=text("sort = 'in_doubt' AND NOT cleared"),
        postgresql_where=text("sort = 'in_doubt' AND NOT cleared"),
    ),
)

collections = Table(
    "collections",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("publish_seq", BigInteger, nullable=False, server_default="0"),
    Column("title", Text, nullable=False, server_default=""),
    Column("options", JSON(none_as_null=True)),
    Column("created_at", Double, nullable=False, server_default="0"),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant", "id", name="one_collection_per_id"),
)

# What a person gave us. What became of it is the head of (index, document:<id>).
documents = Table(
    "documents",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("source", Text, nullable=False),
    Column("url", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("digest", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("options", JSON(none_as_null=True)),
    # Facts of the published generation, written in the transaction that publishes it.
    Column("format", Text),
    Column("pages", Integer),
    Column("chunks", Integer),
    Column("thumbnail", Text),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    PrimaryKeyConstraint("tenant", "id", name="one_document_per_id"),
    Index(
        "one_live_document_per_content",
        "tenant",
        "collection",
        "digest",
        unique=True,
        sqlite_where=text("NOT deleted"),
        postgresql_where=text("NOT deleted"),
    ),
    Index("ix_documents_collection", "tenant", "collection", "id"),
    Index("ix_documents_name", "tenant", "collection", "name"),
    Index("ix_documents_digest", "digest"),
    Index(
        "ix_documents_own_options",
        "tenant",
        "collection",
        "id",
        sqlite_where=text("options IS NOT NULL AND NOT deleted"),
        postgresql_where=text("options IS NOT NULL AND NOT deleted"),
    ),
)

journal = Table(
    "journal",
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
    # The transaction that wrote the row, given by PostgreSQL; 0 on SQLite, which has one writer. Entries are
    # read in the order of (xid, id): that of `id` alone is not the order in which they appear.
    Column("xid", BigInteger, nullable=False, server_default=own_transaction()),
    Index("ix_journal_order", "xid", "id"),
    Index("ix_journal_head", "head_id", "xid", "id"),
    Index("ix_journal_tenant", "tenant", "xid", "id"),
    Index(
        "ix_journal_duplicates",
        "tenant",
        "at",
        sqlite_where=text("reason = 'duplicate:in_progress'"),
        postgresql_where=text("reason = 'duplicate:in_progress'"),
    ),
    sqlite_autoincrement=True,
)
