"""The tables of API keys, sessions, idempotent responses, and how much a tenant may store."""

from sqlalchemy import JSON, BigInteger, Column, Double, Index, Integer, Table, Text

from holdfast.store.base.schema.metadata import metadata

# The token itself is not stored: `digest` is its SHA-256. It has 256 random bits, so neither a salt nor a
# slow hash would add anything: a dictionary attack is hopeless.
api_keys = Table(
    "holdfast_api_keys",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("id", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
    # Requests per second, and in a burst; if unset, those of the settings.
    Column("rate", Double),
    Column("concurrency", Integer),
    # Only documents that pass it exist for this key; if unset, all of the tenant's.
    Column("filter", JSON(none_as_null=True)),
    Index("holdfast_api_keys_id", "id"),
)

# `status` and `answer` are set together when the request is answered; until then `token` owns the row.
idempotency = Table(
    "holdfast_idempotency",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("open_until", Double, nullable=False),
    Column("status", Integer),
    Column("answer", Text),
    Column("created_at", Double, nullable=False),
    Index("holdfast_idempotency_created", "created_at"),
)

# Triggers on `documents` (migrations) count what a tenant stores. Limits are set by people; if unset, those
# of the settings apply. A change of a document locks this row until the transaction ends.
quotas = Table(
    "holdfast_quotas",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("documents", BigInteger, nullable=False, server_default="0"),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Column("most_documents", BigInteger),
    Column("most_bytes", BigInteger),
)

# As with keys, the token itself is not stored. A session is valid as long as its key.
page_sessions = Table(
    "holdfast_page_sessions",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Index("holdfast_page_sessions_expires", "expires_at"),
)
