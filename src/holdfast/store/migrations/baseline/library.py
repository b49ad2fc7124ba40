"""Collections and documents."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.migrations.baseline.shared import where


def create() -> None:
    """The tables and their indexes are there."""
    _collections()
    _documents()
    _indexes_of_documents()
    _rounds()


def _collections() -> None:
    op.create_table(
        "holdfast_collections",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("publish_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("options", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name="holdfast_one_collection_per_id"),
    )


def _documents() -> None:
    op.create_table(
        "holdfast_documents",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("options", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("format", sa.Text(), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("chunks", sa.Integer(), nullable=True),
        sa.Column("thumbnail", sa.Text(), nullable=True),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name="holdfast_one_document_per_id"),
    )


def _indexes_of_documents() -> None:
    op.create_index("holdfast_documents_collection", "holdfast_documents", ["tenant", "collection", "id"])
    op.create_index(
        "holdfast_documents_deleted",
        "holdfast_documents",
        ["tenant", "collection", "id"],
        sqlite_where=sa.text("deleted = 1"),
        postgresql_where=sa.text("deleted"),
    )
    op.create_index("holdfast_documents_digest", "holdfast_documents", ["digest"])
    op.create_index("holdfast_documents_name", "holdfast_documents", ["tenant", "collection", "name"])
    op.create_index(
        "holdfast_documents_own_options",
        "holdfast_documents",
        ["tenant", "collection", "id"],
        **where("options IS NOT NULL AND NOT deleted"),
    )
    op.create_index(
        "holdfast_documents_thumbnail", "holdfast_documents", ["thumbnail"], **where("thumbnail IS NOT NULL")
    )
    op.create_index(
        "holdfast_one_live_document_per_content",
        "holdfast_documents",
        ["tenant", "collection", "digest"],
        unique=True,
        **where("NOT deleted"),
    )


def _rounds() -> None:
    op.create_table(
        "holdfast_rounds",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("sort", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("max_cost", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint(
            "tenant", "collection", "sort", name="holdfast_one_round_per_collection_and_sort"
        ),
    )
