"""Documents have gaps, and recognised pages are kept; the running release writes neither."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("holdfast_documents", sa.Column("gaps", sa.JSON()))
    op.create_table(
        "holdfast_page_texts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name="holdfast_one_text_per_picture"),
    )
    op.create_index("holdfast_page_texts_head", "holdfast_page_texts", ["head_id"])
    partial = sa.text("gaps IS NOT NULL AND NOT deleted")
    op.create_index(
        "holdfast_documents_gaps",
        "holdfast_documents",
        ["tenant", "id"],
        sqlite_where=partial,
        postgresql_where=partial,
    )
