"""Calls, orders, charges, budgets and provider troubles."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.migrations.baseline.shared import ID, where


def create() -> None:
    """The tables and their indexes are there."""
    _budgets()
    _calls()
    _indexes_of_calls()
    _orders()
    _indexes_of_orders()
    _provider_troubles()
    _throttles()
    _charges()
    _indexes_of_charges()
    _ceilings()


def _budgets() -> None:
    op.create_table(
        "holdfast_budgets",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), server_default="total", nullable=False),
        sa.Column("hard_limit", sa.BigInteger(), nullable=True),
        sa.Column("soft_limit", sa.BigInteger(), nullable=True),
        sa.Column("window_start", sa.Double(), server_default="0", nullable=False),
        sa.Column("window_end", sa.Double(), nullable=True),
        sa.Column("spent", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("warned", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.CheckConstraint("period IN ('day', 'month', 'total')", name="holdfast_budget_period_is_known"),
        sa.CheckConstraint("reserved >= 0", name="holdfast_g5_reservations_are_never_negative"),
        sa.PrimaryKeyConstraint("tenant", "scope", "period", name="holdfast_one_budget_per_scope"),
    )


def _calls() -> None:
    op.create_table(
        "holdfast_calls",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("provider", sa.Text(), server_default="", nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("estimate", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.Column("settled_at", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "state <> 'settled' OR result IS NOT NULL", name="holdfast_g5_a_settled_call_keeps_its_result"
        ),
        sa.CheckConstraint(
            "state IN ('in_doubt', 'intent', 'parked', 'sent', 'settled', 'void')",
            name="holdfast_call_state_is_known",
        ),
        sa.PrimaryKeyConstraint("tenant", "key", name="holdfast_g5_one_row_per_paid_input"),
    )


def _indexes_of_calls() -> None:
    op.create_index("holdfast_calls_order", "holdfast_calls", ["order_id"])


def _orders() -> None:
    op.create_table(
        "holdfast_orders",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("call_keys", sa.JSON(), nullable=False),
        sa.Column("weights", sa.JSON(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("keyed", sa.Boolean(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("carrier", sa.Text(), nullable=True),
        sa.Column("task_id", sa.BigInteger(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("estimate", sa.BigInteger(), nullable=False),
        sa.Column("unpriced", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("doubts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("approved", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("send_token", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("first_sent_at", sa.Double(), nullable=True),
        sa.Column("sent_at", sa.Double(), nullable=True),
        sa.Column("deadline", sa.Double(), nullable=False),
        sa.Column("deadline_at", sa.Double(), nullable=False),
        sa.Column("sends", sa.Integer(), server_default="0", nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("settled_at", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "state IN ('in_doubt', 'intent', 'parked', 'sent', 'settled', 'void')",
            name="holdfast_order_state_is_known",
        ),
        sa.PrimaryKeyConstraint("id", name="holdfast_orders_pk"),
        sa.UniqueConstraint("idempotency_key", name="holdfast_g5_one_order_per_idempotency_key"),
    )


def _indexes_of_orders() -> None:
    op.create_index(
        "holdfast_orders_in_flight",
        "holdfast_orders",
        ["deadline_at"],
        **where("state IN ('intent', 'sent')"),
    )
    op.create_index("holdfast_orders_run", "holdfast_orders", ["run_id"])
    op.create_index(
        "holdfast_orders_unsettled",
        "holdfast_orders",
        ["state", "deadline_at"],
        **where("state IN ('in_doubt', 'intent', 'parked', 'sent')"),
    )


def _provider_troubles() -> None:
    op.create_table(
        "holdfast_provider_troubles",
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("provider", "endpoint", name="holdfast_one_trouble_per_provider"),
    )


def _throttles() -> None:
    op.create_table(
        "holdfast_throttles",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("not_before", sa.Double(), nullable=False),
        sa.Column("refusals", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("scope", name="holdfast_throttles_pk"),
    )


def _charges() -> None:
    op.create_table(
        "holdfast_charges",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("order_id", sa.Text(), nullable=False),
        sa.Column("send", sa.Integer(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("sort", sa.Text(), nullable=False),
        sa.Column("cleared", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("prices", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.CheckConstraint("sort IN ('paid', 'second', 'in_doubt')", name="holdfast_charge_sort_is_known"),
        sa.ForeignKeyConstraint(["order_id"], ["holdfast_orders.id"], name="holdfast_charges_order_id_fk"),
        sa.PrimaryKeyConstraint("id", name="holdfast_charges_pk"),
        sa.UniqueConstraint("order_id", "send", "sort", name="holdfast_g5_one_charge_per_send"),
    )


def _indexes_of_charges() -> None:
    op.create_index(
        "holdfast_charges_doubts",
        "holdfast_charges",
        ["tenant"],
        **where("sort = 'in_doubt' AND NOT cleared"),
    )
    op.create_index("holdfast_charges_run", "holdfast_charges", ["run_id"])
    op.create_index("holdfast_charges_tenant", "holdfast_charges", ["tenant", "at"])


def _ceilings() -> None:
    op.create_table(
        "holdfast_ceilings",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("requested", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["holdfast_runs.id"], name="holdfast_ceilings_run_id_fk", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", name="holdfast_ceilings_pk"),
    )
