"""Jobs, and what they leave behind."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job_results",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("source", sa.BigInteger(), nullable=False),
        sa.Column("page", sa.Integer()),
        sa.Column("chunk", sa.Integer()),
        sa.Column("mark", sa.Text()),
        sa.Column("good", sa.Boolean(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "slice", "position", name="one_result_per_place"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_job_results_run_id"), ondelete="CASCADE"
        ),
    )
    op.create_index("ix_job_results_mark", "job_results", ["run_id", "mark"])
    op.create_index("ix_job_results_head", "job_results", ["head_id"])
    op.create_index("ix_job_results_document", "job_results", ["tenant", "document"])
    deletion = sa.text("reason = 'delete'")
    op.create_index(
        "ix_runs_deletions",
        "runs",
        ["head_id", "generation"],
        sqlite_where=deletion,
        postgresql_where=deletion,
    )
    where = sa.text("kind <> 'index'")
    op.create_index(
        "ix_runs_jobs",
        "runs",
        ["tenant", "queued_at", "id"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    op.drop_index("ix_runs_jobs", table_name="runs")
    op.drop_index("ix_runs_deletions", table_name="runs")
    op.drop_index("ix_job_results_document", table_name="job_results")
    op.drop_index("ix_job_results_head", table_name="job_results")
    op.drop_index("ix_job_results_mark", table_name="job_results")
    op.drop_table("job_results")
