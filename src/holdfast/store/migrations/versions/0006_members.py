"""Documents may lie in others: files of archives, attachments of messages; the running release has none."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The table of links exists."""
    op.create_table(
        "holdfast_document_members",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("child", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "parent", "child", name="holdfast_one_link_per_member"),
    )
    op.create_index(
        "holdfast_document_members_child", "holdfast_document_members", ["tenant", "child", "parent"]
    )
