"""Jobs and deliveries are listed by their state along an index, and deliveries that wait are counted."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

A_JOB = "kind <> 'index' AND kind <> 'webhook' AND length(subject) - length(replace(subject, '#', '')) = 0"
A_DELIVERY = "kind = 'webhook'"
A_LIVE_ONE = f"{A_DELIVERY} AND status IN ('queued', 'running')"
INDEXES = {
    "ix_runs_jobs_listed": (["tenant", "queued_at", "id"], A_JOB),
    "ix_runs_jobs_in_state": (["tenant", "status", "queued_at", "id"], A_JOB),
    "ix_runs_deliveries_in_state": (["tenant", "status", "head_id"], A_DELIVERY),
    "ix_runs_deliveries_waiting": (["queued_at"], A_LIVE_ONE),
}


def upgrade() -> None:
    for name, (columns, where) in INDEXES.items():
        op.create_index(name, "runs", columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
    op.create_index("ix_deliveries_head", "deliveries", ["tenant", "head_id"])
    op.drop_index("ix_runs_jobs", table_name="runs")
    op.drop_index("ix_deliveries_tenant", table_name="deliveries")


def downgrade() -> None:
    op.create_index("ix_deliveries_tenant", "deliveries", ["tenant", "number"])
    where = sa.text("kind <> 'index'")
    op.create_index(
        "ix_runs_jobs", "runs", ["tenant", "queued_at", "id"], sqlite_where=where, postgresql_where=where
    )
    op.drop_index("ix_deliveries_head", table_name="deliveries")
    for name in INDEXES:
        op.drop_index(name, table_name="runs")
