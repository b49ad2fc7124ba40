"""The tables of who may ask over HTTP, what was answered, and how much a tenant may hold."""

from sqlalchemy import JSON, BigInteger, Column, Double, Index, Integer, Table, Text

from holdfast.store.base.schema.metadata import metadata

# The token itself is nowhere: `digest` is its SHA-256. It has 256 random bits, so that neither salt nor a
# slow hash would add anything: there is no dictionary to try.
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
    # Requests a second, and at once; without them those of the settings.
    Column("rate", Double),
    Column("concurrency", Integer),
    Index("holdfast_api_keys_id", "id"),
)

# `status` and `answer` are set together, once the request is answered; until then `token` holds the row.
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

# What a tenant holds is counted by triggers on `documents` (migrations), the limits are people's; without one
# that of the settings holds. Whoever changes a document holds this row until the transaction ends.
quotas = Table(
    "holdfast_quotas",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("documents", BigInteger, nullable=False, server_default="0"),
    Column("bytes", BigInteger, nullable=False, server_default="0"),
    Column("most_documents", BigInteger),
    Column("most_bytes", BigInteger),
)

# As with keys, the token itself is nowhere. A session is worth what its key is worth: revoked, both are.
page_sessions = Table(
    "holdfast_page_sessions",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Index("holdfast_page_sessions_expires", "expires_at"),
)
