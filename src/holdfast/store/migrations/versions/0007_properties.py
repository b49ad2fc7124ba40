"""Documents have properties of their files and a table of contents; the running release writes neither."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The columns exist. Titles of before count as given by a person."""
    op.add_column(
        "holdfast_documents",
        sa.Column("title_given", sa.Boolean(), nullable=False, server_default=sa.text("true")),
    )
    op.add_column("holdfast_documents", sa.Column("properties", sa.JSON(), nullable=True))
    op.add_column("holdfast_documents", sa.Column("outline", sa.JSON(), nullable=True))
