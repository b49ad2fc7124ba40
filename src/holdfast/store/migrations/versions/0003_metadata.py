"""Documents have metadata and labels, keys a filter, collections rules of search; the running release has none."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The columns exist, and the table of values that filters read."""
    op.add_column("holdfast_documents", sa.Column("metadata", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("holdfast_documents", sa.Column("labels", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("holdfast_api_keys", sa.Column("filter", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("holdfast_collections", sa.Column("search", sa.JSON(none_as_null=True), nullable=True))
    # Ranges of it are read: byte by byte, on both databases.
    bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "holdfast_document_values",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("path", bytewise, nullable=False),
        sa.Column("kind", bytewise, nullable=False),
        sa.Column("key", bytewise, nullable=False),
        sa.Column("whole", bytewise, nullable=True),
        sa.PrimaryKeyConstraint(
            "tenant", "document", "position", name="holdfast_one_document_value_per_position"
        ),
    )
    op.create_index(
        "holdfast_document_values_key",
        "holdfast_document_values",
        ["tenant", "collection", "path", "kind", "key", "document"],
    )
