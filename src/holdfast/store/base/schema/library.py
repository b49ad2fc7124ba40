"""The tables of collections and documents, and of bulk updates of whole collections."""

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

collections = Table(
    "holdfast_collections",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("publish_seq", BigInteger, nullable=False, server_default="0"),
    Column("title", Text, nullable=False, server_default=""),
    Column("options", JSON(none_as_null=True)),
    # How it is searched, other than by what its documents hold: synonyms, stop words.
    Column("search", JSON(none_as_null=True)),
    Column("created_at", Double, nullable=False, server_default="0"),
    Column("deleted", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant", "id", name="holdfast_one_collection_per_id"),
)

# A document as uploaded. The state of its processing is the head of (index, document:<id>).
documents = Table(
    "holdfast_documents",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("title", Text, nullable=False),
    # False if nobody gave a title: then it is the one in the file, or the name of the file.
    Column("title_given", Boolean, nullable=False, server_default=text("true")),
    Column("name", Text, nullable=False, server_default=""),
    # What the system that it comes from calls it. Documents that have one may have the same content.
    Column("external_id", Bytewise),
    Column("source", Text, nullable=False),
    Column("url", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("digest", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("options", JSON(none_as_null=True)),
    # An object, and a list of texts, both by the user. Filters read their values from `document_values`.
    Column("metadata", JSON(none_as_null=True)),
    Column("labels", JSON(none_as_null=True)),
    # Opens the content if it is protected. Leaves the store for the worker that parses, and for nobody else.
    Column("password", Text),
    # Facts about the published generation, written in the transaction that publishes it.
    Column("format", Text),
    # The code of its language, by whose rules its words are searched; NULL: not known.
    Column("language", Text),
    Column("pages", Integer),
    Column("chunks", Integer),
    Column("thumbnail", Text),
    # The fingerprint of its `chunk_edits`; NULL if it has none. Part of the work: see `kinds.index`.
    Column("edits", Text),
    # The pages that could not be read: [{pages, reason, count}].
    Column("gaps", JSON(none_as_null=True)),
    # What the file says about itself, an object; and its table of contents: [[level, title, page]].
    Column("properties", JSON(none_as_null=True)),
    Column("outline", JSON(none_as_null=True)),
    # How many of its pages have which quality; NULL for a format whose pages have none.
    Column("page_qualities", JSON(none_as_null=True)),
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
        sqlite_where=text("external_id IS NULL AND deleted = 0"),
        postgresql_where=text("external_id IS NULL AND NOT deleted"),
    ),
    Index(
        "holdfast_one_live_document_per_external_id",
        "tenant",
        "collection",
        "external_id",
        unique=True,
        sqlite_where=text("external_id IS NOT NULL AND deleted = 0"),  # as statements spell it for SQLite
        postgresql_where=text("external_id IS NOT NULL AND NOT deleted"),
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
        "holdfast_documents_gaps",
        "tenant",
        "id",
        **where("gaps IS NOT NULL AND NOT deleted"),
    ),
    Index(
        "holdfast_documents_deleted",
        "tenant",
        "collection",
        "id",
        sqlite_where=text("deleted = 1"),  # as statements spell it for SQLite, which compares the text
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

# Which documents lie in which: files of an archive, attachments of a message. A link counts while both exist.
document_members = Table(
    "holdfast_document_members",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("child", Text, nullable=False),
    PrimaryKeyConstraint("tenant", "parent", "child", name="holdfast_one_link_per_member"),
    Index("holdfast_document_members_child", "tenant", "child", "parent"),
)

# The values of metadata, labels and properties, one row each, for filters: see `core.document_metadata`.
# `position` only numbers them; the path of a property begins with `$file.`. `whole` is set if `key` is the
# beginning of a longer text.
document_values = Table(
    "holdfast_document_values",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("collection", Text, nullable=False),
    Column("path", Bytewise, nullable=False),
    Column("kind", Bytewise, nullable=False),
    Column("key", Bytewise, nullable=False),
    Column("whole", Bytewise),
    PrimaryKeyConstraint("tenant", "document", "position", name="holdfast_one_document_value_per_position"),
    Index("holdfast_document_values_key", "tenant", "collection", "path", "kind", "key", "document"),
)

# What people changed in the chunks of a document, by the digest of a chunk's text as the document says it.
# `context` tells equal texts apart, "" where there is one. `text` is NULL if only `enabled` was changed.
# Written under the lock of the document's head, with `documents.edits` and the request for a generation.
chunk_edits = Table(
    "holdfast_chunk_edits",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("page", Integer),
    Column("original", Text, nullable=False),
    Column("text", Text),
    Column("enabled", Boolean, nullable=False),
    Column("mark", Text, nullable=False),
    # Bytes of `text`, which triggers (migrations) count into the tenant's quota.
    Column("size", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("updated_at", Double, nullable=False),
    PrimaryKeyConstraint("tenant", "document", "digest", "context", name="holdfast_one_edit_per_chunk"),
)

# What text recognition read on a page, by the digest of what is drawn there and of how it was read. `head_id`
# is that of the document that used it last: it is deleted with that document.
page_texts = Table(
    "holdfast_page_texts",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("head_id", BigInteger, nullable=False),
    Column("data", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("tenant", "key", name="holdfast_one_text_per_picture"),
    Index("holdfast_page_texts_head", "head_id"),
)

# A bulk update of all documents of a collection, which the sweep continues where it stopped: `options`
# requests each again, `delete` deletes each. `after` is the last document done. `token` is drawn again when
# the update restarts, so that a holder of the old one changes nothing.
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
    # What the run of each document may spend at most, in nano-dollars; NULL: not set by the request.
    Column("max_cost", BigInteger),
    PrimaryKeyConstraint("tenant", "collection", "sort", name="holdfast_one_round_per_collection_and_sort"),
)
