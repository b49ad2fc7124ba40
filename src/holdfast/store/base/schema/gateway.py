"""The tables of the gateway: requests without a scope under way, and what was asked and saved."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from holdfast.store.base.schema.metadata import metadata

# A request outside a scope is a call of its own. Its row is deleted when the answer was delivered whole;
# until then it is held by a gateway, or an orphan that the next identical request adopts.
gateway_calls = Table(
    "holdfast_gateway_calls",
    metadata,
    Column("call", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("process", Text, nullable=False),
    Column("hold", Text, nullable=False),
    # NULL: an orphan. In the past: its gateway has fallen silent, which makes it one too.
    Column("held_until", Double),
    Column("created_at", Double, nullable=False),
    Index("holdfast_gateway_calls_content", "tenant", "content"),
    Index("holdfast_gateway_calls_created", "created_at"),
)

# Counted in the memory of each gateway process, which writes its totals of the hour every second.
gateway_usage = Table(
    "holdfast_gateway_usage",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("hour", BigInteger, nullable=False),
    Column("gateway", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("requests", BigInteger, nullable=False),
    Column("reused", BigInteger, nullable=False),
    Column("waited", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("reused_calls", BigInteger, nullable=False),
    Column("saved", BigInteger, nullable=False),
    Column("millis", BigInteger, nullable=False),
    PrimaryKeyConstraint(
        "tenant",
        "hour",
        "gateway",
        "key_id",
        "scope",
        "provider",
        "endpoint",
        "model",
        name="holdfast_one_usage_per_hour",
    ),
)

# The slowest requests and the errors of each gateway, a bounded number a minute; old ones are deleted.
gateway_notes = Table(
    "holdfast_gateway_notes",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("status", Integer, nullable=False),
    Column("code", Text, nullable=False),
    Column("millis", BigInteger, nullable=False),
    Column("order_id", Text),
    CheckConstraint("kind IN ('slow', 'error')", name="holdfast_gateway_note_kind_is_known"),
    Index("holdfast_gateway_notes_tenant", "tenant", "kind", "at"),
    Index("holdfast_gateway_notes_at", "at"),
)
