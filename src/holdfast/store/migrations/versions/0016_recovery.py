"""Who carries an order and holds a task, and how a task lost its holders."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "carriers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("process", sa.Text, nullable=False),
        sa.Column("parent", sa.Text, nullable=False),
        sa.Column("lease_until", sa.Double, nullable=False, server_default="0"),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
    )
    op.create_index("ix_carriers_process", "carriers", ["process"])
    op.create_index("ix_carriers_lease", "carriers", ["lease_until"])
    op.add_column("tasks", sa.Column("carrier", sa.Text))
    op.add_column("tasks", sa.Column("losses", sa.Integer, nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("only_waits", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("orders", sa.Column("carrier", sa.Text))


def downgrade() -> None:
    op.drop_column("orders", "carrier")
    for name in ("only_waits", "losses", "carrier"):
        op.drop_column("tasks", name)
    op.drop_table("carriers")
