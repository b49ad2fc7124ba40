"""The tables of sources, and of the items that each of them held at its last look."""

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

from holdfast.store.base.schema.metadata import Bytewise, metadata, where

# A place outside that documents come from. A look at it is a run of (look, collection:<id>#source:<id>).
# `secrets` leaves the store for the worker that looks, and for nobody else. `state` is the source's own, and
# belongs to the options of this `revision`. `next_at`: when a look is due; NULL: on demand.
sources = Table(
    "holdfast_sources",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
    Column("options", JSON, nullable=False),
    Column("secrets", JSON(none_as_null=True)),
    Column("metadata", JSON(none_as_null=True)),
    Column("labels", JSON(none_as_null=True)),
    Column("refresh_every", Double),
    Column("prune", Boolean, nullable=False, server_default=text("false")),
    Column("actor", Text, nullable=False, server_default=""),
    Column("revision", Integer, nullable=False, server_default="1"),
    Column("state", Text, nullable=False, server_default=""),
    Column("next_at", Double),
    # Of the last look that ended: when, what it counted, and why it failed, if it did.
    Column("looked_at", Double),
    Column("counts", JSON(none_as_null=True)),
    Column("error_code", Text),
    Column("error_message", Text),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("created_at", Double, nullable=False),
    # What becomes of the documents of a source that is being removed: keep or delete. NULL: it is there.
    Column("removal", Text),
    PrimaryKeyConstraint("tenant", "id", name="holdfast_one_source_per_id"),
    Index("holdfast_sources_collection", "tenant", "collection", "id"),
    Index("holdfast_sources_due", "next_at", **where("next_at IS NOT NULL")),
)

# One item of a source, and the document that was made of it; several items with the same bytes share one.
# `version` is that of the content which the document has; empty: unknown. `look` is the generation of the
# look that wrote the row last, and `change` what it found: so a look that is taken up again counts each item
# once. (The external id of an upload is on its document: there is no item without a source.)
source_items = Table(
    "holdfast_source_items",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("external_id", Bytewise, nullable=False),
    Column("document", Text),
    Column("version", Text, nullable=False, server_default=""),
    Column("name", Text, nullable=False, server_default=""),
    Column("url", Text),
    # current, failed, gone
    Column("state", Text, nullable=False),
    Column("error_code", Text),
    Column("error_message", Text),
    Column("look", BigInteger, nullable=False, server_default="0"),
    Column("change", Text, nullable=False, server_default=""),
    Column("changed_at", Double, nullable=False),
    PrimaryKeyConstraint("tenant", "source", "external_id", name="holdfast_one_item_per_external_id"),
    Index("holdfast_source_items_state", "tenant", "source", "state", "external_id"),
    Index(
        "holdfast_source_items_document",
        "tenant",
        "document",
        **where("document IS NOT NULL"),
    ),
)
