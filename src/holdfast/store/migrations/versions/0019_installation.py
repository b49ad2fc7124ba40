"""Which blob store belongs to this database."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("blobs_id", sa.Text(), nullable=False),
        sa.CheckConstraint("id = 1", name="one_installation_per_database"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_installation")),
    )


def downgrade() -> None:
    op.drop_table("installation")
