"""The table of who is signed in to the page. It belongs to `schema.metadata`."""

from sqlalchemy import Column, Double, Index, Table, Text

from holdfast.store.schema import metadata

# As with keys, the token itself is nowhere. A session is worth what its key is worth: revoked, both are.
page_sessions = Table(
    "page_sessions",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("key_id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Index("ix_page_sessions_expires", "expires_at"),
)
