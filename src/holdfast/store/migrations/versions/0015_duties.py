"""Duties tell how they are; documents with options of their own are found without looking at the others."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0012"
branch_labels = None
depends_on = None

NUMBERS = ("every", "enrolled_at", "succeeded_at", "failed_at")


def upgrade() -> None:
    for name in NUMBERS:
        op.add_column("duties", sa.Column(name, sa.Double(), nullable=False, server_default="0"))
    op.add_column("duties", sa.Column("failures", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("duties", sa.Column("error", sa.Text(), nullable=False, server_default=""))
    where = sa.text("options IS NOT NULL AND NOT deleted")
    op.create_index(
        "ix_documents_own_options",
        "documents",
        ["tenant", "collection", "id"],
        sqlite_where=where,
        postgresql_where=where,
    )
    where = sa.text("visited IS NOT NULL")
    op.create_index("ix_actions_visited", "actions", ["id"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    op.drop_index("ix_actions_visited", table_name="actions")
    op.drop_index("ix_documents_own_options", table_name="documents")
    for name in ("error", "failures", *reversed(NUMBERS)):
        op.drop_column("duties", name)
