"""The tables of what happens when a document is ready or a run ends."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from holdfast.core.states import LIVE
from holdfast.store.base.schema.metadata import Id, metadata, one_of, where
from holdfast.store.base.schema.protocol import runs

# `visited`: the last head that the first pass of a new action has visited; NULL if no pass is under way.
# `secret` signs what a webhook sends and is used for nothing else.
actions = Table(
    "holdfast_actions",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("tenant", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("options", JSON, nullable=False),
    Column("pipeline", Text, nullable=False),
    Column("active", Boolean, nullable=False, server_default=text("true")),
    Column("token", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("secret", Text),
    Column("visited", BigInteger),
    Column("created_at", Double, nullable=False, server_default="0"),
    UniqueConstraint("tenant", "token", name="holdfast_one_action_per_token"),
    Index("holdfast_actions_collection", "tenant", "collection"),
    Index(
        "holdfast_actions_visited",
        "id",
        **where("visited IS NOT NULL"),
    ),
)

# What an action `keep` knows of its collection. `seen_seq`: the `publish_seq` up to which it saw changes.
# `changed_at`: the first change that no run was requested for yet. `due_at`: when to request one. The error
# is why the last request was refused.
keeps = Table(
    "holdfast_keeps",
    metadata,
    Column("action_id", ForeignKey("holdfast_actions.id"), nullable=False),
    Column("tenant", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("seen_seq", BigInteger, nullable=False),
    Column("changed_at", Double),
    Column("due_at", Double),
    Column("error_code", Text),
    Column("error_message", Text),
    PrimaryKeyConstraint("action_id", name="holdfast_one_keep_per_action"),
)

follow_ups = Table(
    "holdfast_follow_ups",
    metadata,
    Column("action_id", ForeignKey("holdfast_actions.id"), nullable=False),
    Column("head_id", ForeignKey("holdfast_heads.id"), nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("run_id", Text, nullable=False),
    PrimaryKeyConstraint(
        "action_id", "head_id", "generation", name="holdfast_one_follow_up_per_action_and_generation"
    ),
    Index("holdfast_follow_ups_head", "head_id"),
    Index("holdfast_follow_ups_run", "run_id"),
)

# One event for one URL. `id` is the event's; `head_id` is the head of (webhook, delivery:<id>), whose status
# is that of the delivery; `cause` is the run that ended. `body` is sent byte for byte at every attempt.
deliveries = Table(
    "holdfast_deliveries",
    metadata,
    Column("number", Id, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("head_id", ForeignKey("holdfast_heads.id"), nullable=False),
    Column("action_id", BigInteger),
    Column("cause", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("event", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("secret", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("last_status", Integer),
    Column("last_error", Text),
    Column("created_at", Double, nullable=False),
    # Attempts are made for a limited time from here: since it was created, or sent again by a person.
    Column("since", Double, nullable=False),
    Column("delivered_at", Double),
    UniqueConstraint("id", name="holdfast_one_delivery_per_event"),
    Index("holdfast_deliveries_head", "tenant", "head_id"),
    Index(
        "holdfast_deliveries_action",
        "action_id",
        "number",
        **where("action_id IS NOT NULL"),
    ),
    sqlite_autoincrement=True,
)

# The runs of deliveries: those in one state, newest first; and those waiting, of all tenants. Over runs,
# because an index over the status of heads would slow down every status change of a document.
A_DELIVERY = "kind = 'webhook'"

A_LIVE_ONE = f"{A_DELIVERY} AND {one_of('status', LIVE)}"

Index(
    "holdfast_runs_deliveries_in_state",
    runs.c.tenant,
    runs.c.status,
    runs.c.head_id,
    **where(A_DELIVERY),
)

Index(
    "holdfast_runs_deliveries_waiting",
    runs.c.queued_at,
    **where(A_LIVE_ONE),
)

# The results of an agent's tools, so that a resumed run asks its model the same questions.
findings = Table(
    "holdfast_findings",
    metadata,
    Column("run_id", ForeignKey("holdfast_runs.id", ondelete="CASCADE"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("text", Text, nullable=False),
    PrimaryKeyConstraint("run_id", "step", name="holdfast_one_finding_per_step"),
)
