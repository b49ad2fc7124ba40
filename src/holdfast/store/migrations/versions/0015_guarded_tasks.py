"""Messages of guarded Celery tasks; the running release has none."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The table and the index of tasks whose message is to be published exist."""
    op.create_table(
        "holdfast_messages",
        sa.Column(
            "run_id", sa.Text(), sa.ForeignKey("holdfast_runs.id", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("celery_id", sa.Text(), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("report_at", sa.Double(), nullable=True),
    )
    to_report = sa.text("report_at IS NOT NULL")
    op.create_index(
        "holdfast_messages_to_report",
        "holdfast_messages",
        ["report_at"],
        sqlite_where=to_report,
        postgresql_where=to_report,
    )
    to_publish = sa.text("state = 'queued' AND lane = 'guarded'")
    op.create_index(
        "holdfast_tasks_to_publish",
        "holdfast_tasks",
        ["look_again_at"],
        sqlite_where=to_publish,
        postgresql_where=to_publish,
    )
