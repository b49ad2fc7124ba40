"""Actions of collections, and what is to be delivered to other people's addresses."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("runs", sa.Column("callback", sa.JSON()))
    op.add_column("actions", sa.Column("name", sa.Text(), nullable=False, server_default=""))
    op.add_column("actions", sa.Column("secret", sa.Text()))
    op.add_column("actions", sa.Column("visited", sa.BigInteger()))
    op.add_column("actions", sa.Column("created_at", sa.Double(), nullable=False, server_default="0"))
    op.create_index("ix_follow_ups_head", "follow_ups", ["head_id"])
    op.create_table(
        "deliveries",
        sa.Column("number", BIG, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("head_id", BIG, nullable=False),
        sa.Column("action_id", sa.BigInteger()),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("last_status", sa.Integer()),
        sa.Column("last_error", sa.Text()),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("delivered_at", sa.Double()),
        sa.ForeignKeyConstraint(["head_id"], ["heads.id"], name=op.f("fk_deliveries_head_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("id", name="one_delivery_per_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_deliveries_tenant", "deliveries", ["tenant", "number"])
    op.create_index(
        "ix_deliveries_action",
        "deliveries",
        ["action_id", "number"],
        sqlite_where=sa.text("action_id IS NOT NULL"),
        postgresql_where=sa.text("action_id IS NOT NULL"),
    )
    op.create_table(
        "findings",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_findings_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "step", name="one_finding_per_step"),
    )


def downgrade() -> None:
    op.drop_table("findings")
    op.drop_index("ix_deliveries_action", table_name="deliveries")
    op.drop_index("ix_deliveries_tenant", table_name="deliveries")
    op.drop_table("deliveries")
    op.drop_index("ix_follow_ups_head", table_name="follow_ups")
    for name in ("created_at", "visited", "secret", "name"):
        op.drop_column("actions", name)
    op.drop_column("runs", "callback")
