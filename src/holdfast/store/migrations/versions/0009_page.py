"""Who is signed in to the page."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "page_sessions",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_page_sessions")),
    )
    op.create_index("ix_page_sessions_expires", "page_sessions", ["expires_at"])


def downgrade() -> None:
    op.drop_index("ix_page_sessions_expires", table_name="page_sessions")
    op.drop_table("page_sessions")
