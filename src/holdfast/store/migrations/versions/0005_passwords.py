"""Documents may have a password; the running release has none."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The column exists."""
    op.add_column("holdfast_documents", sa.Column("password", sa.Text(), nullable=True))


def downgrade() -> None:
    """The column is gone, and every password with it."""
    op.drop_column("holdfast_documents", "password")
