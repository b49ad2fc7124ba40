"""What money, limits and traces need to be known by."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

DOUBTS = sa.text("sort = 'in_doubt' AND NOT cleared")
DUPLICATES = sa.text("reason = 'duplicate:in_progress'")


def upgrade() -> None:
    op.add_column("budgets", sa.Column("warned", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("runs", sa.Column("trace", sa.Text()))
    op.add_column("api_keys", sa.Column("rate", sa.Double()))
    op.add_column("api_keys", sa.Column("concurrency", sa.Integer()))
    op.create_index("ix_charges_doubts", "charges", ["tenant"], sqlite_where=DOUBTS, postgresql_where=DOUBTS)
    op.create_index(
        "ix_journal_duplicates",
        "journal",
        ["tenant", "at"],
        sqlite_where=DUPLICATES,
        postgresql_where=DUPLICATES,
    )


def downgrade() -> None:
    op.drop_index("ix_journal_duplicates", table_name="journal")
    op.drop_index("ix_charges_doubts", table_name="charges")
    op.drop_column("api_keys", "concurrency")
    op.drop_column("api_keys", "rate")
    op.drop_column("runs", "trace")
    op.drop_column("budgets", "warned")
