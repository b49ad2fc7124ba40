"""Relays: the processes that carry orders for workers; the running release has none."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The table exists."""
    op.create_table(
        "holdfast_relays",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("suspect_at", sa.Double(), nullable=True),
        sa.Column("lock_path", sa.Text(), nullable=False),
        sa.Column("lock_device", sa.Text(), nullable=False),
        sa.Column("lock_inode", sa.Text(), nullable=False),
        sa.Column("carrying", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("gone_at", sa.Double(), nullable=True),
        sa.Column("gone_by", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('draining', 'gone', 'up')", name="holdfast_relay_state_is_known"),
        sa.CheckConstraint(
            "(state = 'gone') = (gone_by IS NOT NULL)", name="holdfast_g5_a_gone_relay_says_how_it_is_known"
        ),
    )
    indexes = {"present": "state IN ('draining', 'up')", "gone": "state = 'gone'"}
    for name, condition in indexes.items():
        where = sa.text(condition)
        op.create_index(
            f"holdfast_relays_{name}",
            "holdfast_relays",
            ["lease_until"],
            sqlite_where=where,
            postgresql_where=where,
        )
