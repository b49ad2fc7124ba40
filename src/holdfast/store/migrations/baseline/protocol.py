"""Heads, runs, tasks, the fair queue, run logs and carriers."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.migrations.baseline.shared import ID, where


def create() -> None:
    """The tables and their indexes are there."""
    _carriers()
    _indexes_of_carriers()
    _heads()
    _indexes_of_heads()
    _turns()
    _runs()
    _indexes_of_runs()
    _lines()
    _tasks()
    _indexes_of_tasks()


def _carriers() -> None:
    op.create_table(
        "holdfast_carriers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("lease_until", sa.Double(), server_default="0", nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="holdfast_carriers_pk"),
    )


def _indexes_of_carriers() -> None:
    op.create_index("holdfast_carriers_lease", "holdfast_carriers", ["lease_until"])
    op.create_index("holdfast_carriers_process", "holdfast_carriers", ["process"])


def _heads() -> None:
    op.create_table(
        "holdfast_heads",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("collection", sa.Text(), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("published_generation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("visible", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("imported", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "status IN ('cancelled', 'failed', 'idle', 'queued', 'running', 'success', 'superseded')",
            name="holdfast_head_status_is_known",
        ),
        sa.CheckConstraint(
            "published_generation <= generation", name="holdfast_g3_published_is_never_ahead_of_requested"
        ),
        sa.PrimaryKeyConstraint("id", name="holdfast_heads_pk"),
        sa.UniqueConstraint("tenant", "kind", "subject", name="holdfast_g1_one_head_per_kind_and_subject"),
    )


def _indexes_of_heads() -> None:
    op.create_index("holdfast_heads_collection", "holdfast_heads", ["tenant", "collection", "id"])
    op.create_index(
        "holdfast_heads_jobs",
        "holdfast_heads",
        ["tenant", "collection", "id"],
        **where(
            "kind <> 'index' AND kind <> 'webhook' AND length(subject) - length(replace(subject, '#', '')) = 0"
        ),
    )
    op.create_index("holdfast_heads_subject", "holdfast_heads", ["tenant", "subject"])


def _turns() -> None:
    op.create_table(
        "holdfast_turns",
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("last_served", sa.Double(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("lane", "tenant", name="holdfast_one_turn_per_lane_and_tenant"),
    )


def _runs() -> None:
    op.create_table(
        "holdfast_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("head_id", ID, nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("disposition", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("trace", sa.Text(), nullable=True),
        sa.Column("slices", sa.Integer(), nullable=True),
        sa.Column("queued_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("callback", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("pruned", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("past", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.CheckConstraint(
            "status IN ('cancelled', 'failed', 'idle', 'queued', 'running', 'success', 'superseded')",
            name="holdfast_run_status_is_known",
        ),
        sa.ForeignKeyConstraint(["head_id"], ["holdfast_heads.id"], name="holdfast_runs_head_id_fk"),
        sa.PrimaryKeyConstraint("id", name="holdfast_runs_pk"),
        sa.UniqueConstraint("head_id", "generation", name="holdfast_g1_one_run_per_generation"),
    )


def _indexes_of_runs() -> None:
    op.create_index(
        "holdfast_g1_one_live_run_per_head",
        "holdfast_runs",
        ["head_id"],
        unique=True,
        **where("status IN ('queued', 'running')"),
    )
    op.create_index(
        "holdfast_runs_deletions", "holdfast_runs", ["head_id", "generation"], **where("reason = 'delete'")
    )
    op.create_index(
        "holdfast_runs_deliveries_in_state",
        "holdfast_runs",
        ["tenant", "status", "head_id"],
        **where("kind = 'webhook'"),
    )
    op.create_index(
        "holdfast_runs_deliveries_waiting",
        "holdfast_runs",
        ["queued_at"],
        **where("kind = 'webhook' AND status IN ('queued', 'running')"),
    )
    op.create_index("holdfast_runs_finished", "holdfast_runs", ["finished_at"])
    op.create_index(
        "holdfast_runs_jobs_in_state",
        "holdfast_runs",
        ["tenant", "status", "queued_at", "id"],
        **where(
            "kind <> 'index' AND kind <> 'webhook' AND length(subject) - length(replace(subject, '#', '')) = 0"
        ),
    )
    op.create_index(
        "holdfast_runs_jobs_listed",
        "holdfast_runs",
        ["tenant", "queued_at", "id"],
        **where(
            "kind <> 'index' AND kind <> 'webhook' AND length(subject) - length(replace(subject, '#', '')) = 0"
        ),
    )
    op.create_index("holdfast_runs_past", "holdfast_runs", ["finished_at"], **where("past"))
    op.create_index("holdfast_runs_running", "holdfast_runs", ["head_id"], **where("status = 'running'"))
    op.create_index(
        "holdfast_runs_unpruned",
        "holdfast_runs",
        ["finished_at"],
        **where("finished_at IS NOT NULL AND NOT pruned"),
    )


def _lines() -> None:
    op.create_table(
        "holdfast_lines",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["holdfast_runs.id"], name="holdfast_lines_run_id_fk", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "id", name="holdfast_one_line_per_id"),
    )


def _tasks() -> None:
    op.create_table(
        "holdfast_tasks",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("age", sa.Double(), nullable=False),
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("weight", sa.Integer(), server_default="1", nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=False),
        sa.Column("waiting_for", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Double(), server_default="0", nullable=False),
        sa.Column("claimed_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("signed_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("advanced", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("carrier", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("only_waits", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("deferrals", sa.Integer(), server_default="0", nullable=False),
        sa.Column("look_again_at", sa.Double(), server_default="0", nullable=False),
        sa.Column("done", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("total", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("unit", sa.Text(), server_default="", nullable=False),
        sa.Column("stages", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("paid_calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("unpriced_calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("reused_calls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("paid", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("saved", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("chunks", sa.Integer(), server_default="0", nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('closed', 'done', 'failed', 'queued', 'running', 'waiting')",
            name="holdfast_task_state_is_known",
        ),
        sa.CheckConstraint("epoch >= 0 AND lease_until >= 0", name="holdfast_g2_epoch_and_lease_are_numbers"),
        sa.ForeignKeyConstraint(
            ["run_id"], ["holdfast_runs.id"], name="holdfast_tasks_run_id_fk", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="holdfast_tasks_pk"),
        sa.UniqueConstraint("run_id", "ordinal", name="holdfast_one_task_per_slice"),
        sqlite_autoincrement=True,
    )


def _indexes_of_tasks() -> None:
    op.create_index(
        "holdfast_tasks_queued",
        "holdfast_tasks",
        ["lane", "tenant", "priority", "age", "id"],
        **where("state = 'queued'"),
    )
    op.create_index("holdfast_tasks_running", "holdfast_tasks", ["lease_until"], **where("state = 'running'"))
    op.create_index("holdfast_tasks_token", "holdfast_tasks", ["token"], **where("state = 'running'"))
    op.create_index("holdfast_tasks_waiting", "holdfast_tasks", ["due_at"], **where("state = 'waiting'"))
