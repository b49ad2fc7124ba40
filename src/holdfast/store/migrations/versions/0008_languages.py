"""Documents have a language and a quality for their pages; the running release writes neither."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The columns exist."""
    op.add_column("holdfast_documents", sa.Column("language", sa.Text()))
    op.add_column("holdfast_documents", sa.Column("page_qualities", sa.JSON()))
