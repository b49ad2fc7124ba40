"""The results of jobs."""

import sqlalchemy as sa
from alembic import op


def create() -> None:
    """The tables and their indexes are there."""
    _job_results()
    _indexes_of_job_results()


def _job_results() -> None:
    op.create_table(
        "holdfast_job_results",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("source", sa.BigInteger(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("chunk", sa.Integer(), nullable=True),
        sa.Column("mark", sa.Text(), nullable=True),
        sa.Column("good", sa.Boolean(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["holdfast_runs.id"], name="holdfast_job_results_run_id_fk", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "slice", "position", name="holdfast_one_result_per_place"),
    )


def _indexes_of_job_results() -> None:
    op.create_index("holdfast_job_results_document", "holdfast_job_results", ["tenant", "document"])
    op.create_index("holdfast_job_results_head", "holdfast_job_results", ["head_id"])
    op.create_index("holdfast_job_results_mark", "holdfast_job_results", ["run_id", "mark"])
