"""Statements that read more than they answered on a large database have an index; SQLite knows its tables."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_documents_deleted",
        "documents",
        ["tenant", "collection", "id"],
        sqlite_where=sa.text("deleted = 1"),
        postgresql_where=sa.text("deleted"),
    )
    where = sa.text("thumbnail IS NOT NULL")
    op.create_index(
        "ix_documents_thumbnail", "documents", ["thumbnail"], sqlite_where=where, postgresql_where=where
    )
    op.create_index("ix_follow_ups_run", "follow_ups", ["run_id"])
    where = sa.text("verb = 'set_budget'")
    op.create_index(
        "ix_journal_budgets", "journal", ["tenant", "id"], sqlite_where=where, postgresql_where=where
    )


def downgrade() -> None:
    op.drop_index("ix_journal_budgets", table_name="journal")
    op.drop_index("ix_follow_ups_run", table_name="follow_ups")
    op.drop_index("ix_documents_thumbnail", table_name="documents")
    op.drop_index("ix_documents_deleted", table_name="documents")
