"""The heads of a collection's jobs are found without looking at those of its documents."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0010"
branch_labels = None
depends_on = None

A_JOB = "kind <> 'index' AND kind <> 'webhook' AND length(subject) - length(replace(subject, '#', '')) = 0"


def upgrade() -> None:
    where = sa.text(A_JOB)
    op.create_index(
        "ix_heads_jobs", "heads", ["tenant", "collection", "id"], sqlite_where=where, postgresql_where=where
    )


def downgrade() -> None:
    op.drop_index("ix_heads_jobs", table_name="heads")
