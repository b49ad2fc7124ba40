"""Collections have sources, and documents external ids; the running release knows neither."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The tables of sources and of their items exist."""
    op.create_table(
        "holdfast_sources",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False, server_default=""),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("secrets", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("metadata", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("labels", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("refresh_every", sa.Double(), nullable=True),
        sa.Column("prune", sa.Boolean(), nullable=False, server_default=sa.text("false")),
        sa.Column("actor", sa.Text(), nullable=False, server_default=""),
        sa.Column("revision", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("state", sa.Text(), nullable=False, server_default=""),
        sa.Column("next_at", sa.Double(), nullable=True),
        sa.Column("looked_at", sa.Double(), nullable=True),
        sa.Column("counts", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("removal", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id", name="holdfast_one_source_per_id"),
    )
    op.create_index("holdfast_sources_collection", "holdfast_sources", ["tenant", "collection", "id"])
    scheduled = sa.text("next_at IS NOT NULL")
    op.create_index(
        "holdfast_sources_due",
        "holdfast_sources",
        ["next_at"],
        sqlite_where=scheduled,
        postgresql_where=scheduled,
    )
    # Ranges of it are read: byte by byte, on both databases.
    bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "holdfast_source_items",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("external_id", bytewise, nullable=False),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=False, server_default=""),
        sa.Column("name", sa.Text(), nullable=False, server_default=""),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("look", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("change", sa.Text(), nullable=False, server_default=""),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "source", "external_id", name="holdfast_one_item_per_external_id"),
    )
    op.create_index(
        "holdfast_source_items_state", "holdfast_source_items", ["tenant", "source", "state", "external_id"]
    )
    linked = sa.text("document IS NOT NULL")
    op.create_index(
        "holdfast_source_items_document",
        "holdfast_source_items",
        ["tenant", "document"],
        sqlite_where=linked,
        postgresql_where=linked,
    )
