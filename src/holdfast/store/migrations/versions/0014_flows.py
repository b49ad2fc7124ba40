"""Flows, and outputs of their steps; the running release knows neither."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The tables exist."""
    op.create_table(
        "holdfast_flows",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", "version", name="holdfast_one_flow_per_version"),
    )
    op.create_table(
        "holdfast_step_outputs",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("output", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "key", name="holdfast_one_output_per_step_and_input"),
    )
    op.create_index("holdfast_step_outputs_head", "holdfast_step_outputs", ["head_id"])
