"""The journal."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.migrations.baseline.shared import ID, where


def create() -> None:
    """The tables and their indexes are there."""
    _journal()
    _indexes_of_journal()


def _journal() -> None:
    op.create_table(
        "holdfast_journal",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("task_id", sa.BigInteger(), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("xid", sa.BigInteger(), server_default=sa.text("'0'"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="holdfast_journal_pk"),
        sqlite_autoincrement=True,
    )


def _indexes_of_journal() -> None:
    op.create_index(
        "holdfast_journal_budgets", "holdfast_journal", ["tenant", "id"], **where("verb = 'set_budget'")
    )
    op.create_index(
        "holdfast_journal_duplicates",
        "holdfast_journal",
        ["tenant", "at"],
        **where("reason = 'duplicate:in_progress'"),
    )
    op.create_index("holdfast_journal_head", "holdfast_journal", ["head_id", "xid", "id"])
    op.create_index("holdfast_journal_order", "holdfast_journal", ["xid", "id"])
    op.create_index("holdfast_journal_tenant", "holdfast_journal", ["tenant", "xid", "id"])
