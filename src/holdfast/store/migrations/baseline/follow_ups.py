"""Actions, follow-ups and deliveries."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.migrations.baseline.shared import ID, where


def create() -> None:
    """The tables and their indexes are there."""
    _actions()
    _indexes_of_actions()
    _deliveries()
    _indexes_of_deliveries()
    _follow_ups()
    _indexes_of_follow_ups()
    _findings()


def _actions() -> None:
    op.create_table(
        "holdfast_actions",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), server_default=sa.text("(true)"), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("visited", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.Double(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name="holdfast_actions_pk"),
        sa.UniqueConstraint("tenant", "token", name="holdfast_one_action_per_token"),
    )


def _indexes_of_actions() -> None:
    op.create_index("holdfast_actions_collection", "holdfast_actions", ["tenant", "collection"])
    op.create_index("holdfast_actions_visited", "holdfast_actions", ["id"], **where("visited IS NOT NULL"))


def _deliveries() -> None:
    op.create_table(
        "holdfast_deliveries",
        sa.Column("number", ID, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("head_id", ID, nullable=False),
        sa.Column("action_id", sa.BigInteger(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_status", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("delivered_at", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["head_id"], ["holdfast_heads.id"], name="holdfast_deliveries_head_id_fk"),
        sa.PrimaryKeyConstraint("number", name="holdfast_deliveries_pk"),
        sa.UniqueConstraint("id", name="holdfast_one_delivery_per_event"),
        sqlite_autoincrement=True,
    )


def _indexes_of_deliveries() -> None:
    op.create_index(
        "holdfast_deliveries_action",
        "holdfast_deliveries",
        ["action_id", "number"],
        **where("action_id IS NOT NULL"),
    )
    op.create_index("holdfast_deliveries_head", "holdfast_deliveries", ["tenant", "head_id"])


def _follow_ups() -> None:
    op.create_table(
        "holdfast_follow_ups",
        sa.Column("action_id", ID, nullable=False),
        sa.Column("head_id", ID, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["action_id"], ["holdfast_actions.id"], name="holdfast_follow_ups_action_id_fk"
        ),
        sa.ForeignKeyConstraint(["head_id"], ["holdfast_heads.id"], name="holdfast_follow_ups_head_id_fk"),
        sa.PrimaryKeyConstraint(
            "action_id", "head_id", "generation", name="holdfast_one_follow_up_per_action_and_generation"
        ),
    )


def _indexes_of_follow_ups() -> None:
    op.create_index("holdfast_follow_ups_head", "holdfast_follow_ups", ["head_id"])
    op.create_index("holdfast_follow_ups_run", "holdfast_follow_ups", ["run_id"])


def _findings() -> None:
    op.create_table(
        "holdfast_findings",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["holdfast_runs.id"], name="holdfast_findings_run_id_fk", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "step", name="holdfast_one_finding_per_step"),
    )
