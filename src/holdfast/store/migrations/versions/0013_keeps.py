"""Actions keep what is derived from a collection up to date; the running release has no such action."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The table of what such actions know of their collections exists."""
    # As the id that it names: SQLite numbers rows in INTEGER columns only.
    action_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "holdfast_keeps",
        sa.Column("action_id", action_id, sa.ForeignKey("holdfast_actions.id"), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("seen_seq", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=True),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("action_id", name="holdfast_one_keep_per_action"),
    )
