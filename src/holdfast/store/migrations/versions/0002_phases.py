"""Runs and tasks have a phase; the running release writes neither, and all its work is in the first."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("holdfast_runs", "holdfast_tasks"):
        op.add_column(table, sa.Column("phase", sa.Integer(), nullable=False, server_default="0"))
