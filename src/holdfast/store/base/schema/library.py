"""The tables of collections and documents, and of what is still to be done to a whole collection."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from holdfast.store.base.schema.metadata import metadata, where

collections = Table(
    "holdfast_collections",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("publish_seq", BigInteger, nullable=False, server_default="0"),
    Column("title", Text, nullable=False, server_default=""),
    Column("options", JSON(none_as_null=True)),
    Column("created_at", Double, nullable=False, server_default="0"),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant", "id", name="holdfast_one_collection_per_id"),
)

# What a person gave us. What became of it is the head of (index, document:<id>).
documents = Table(
    "holdfast_documents",
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
    PrimaryKeyConstraint("tenant", "id", name="holdfast_one_document_per_id"),
    Index(
        "holdfast_one_live_document_per_content",
        "tenant",
        "collection",
        "digest",
        unique=True,
        **where("NOT deleted"),
    ),
    Index("holdfast_documents_collection", "tenant", "collection", "id"),
    Index("holdfast_documents_name", "tenant", "collection", "name"),
    Index("holdfast_documents_digest", "digest"),
    Index(
        "holdfast_documents_thumbnail",
        "thumbnail",
        **where("thumbnail IS NOT NULL"),
    ),
    Index(
        "holdfast_documents_deleted",
        "tenant",
        "collection",
        "id",
        sqlite_where=text("deleted = 1"),  # as statements spell it for SQLite, which compares the texts
        postgresql_where=text("deleted"),
    ),
    Index(
        "holdfast_documents_own_options",
        "tenant",
        "collection",
        "id",
        **where("options IS NOT NULL AND NOT deleted"),
    ),
)

# A round over all documents of a collection, which the sweep goes on with where it stopped: `options` asks
# for each again, `delete` ends each. `after` is the last one that was seen to; `token` is drawn anew when the
# round begins anew, so that whoever still carries the old one moves nothing.
rounds = Table(
    "holdfast_rounds",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("sort", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("due_at", Double, nullable=False),
    # What the run of each document may spend at most, in nano-dollars; NULL: the request did not say.
    Column("max_cost", BigInteger),
    PrimaryKeyConstraint("tenant", "collection", "sort", name="holdfast_one_round_per_collection_and_sort"),
)
