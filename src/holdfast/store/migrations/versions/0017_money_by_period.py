"""Budgets of a day or a month, limits of single runs, and calls without a price.

Workers of the release before go on paying under the budgets there are. While they run, give no scope a second
budget (of a day beside the total): they would look at one of the two. `budget set` of the release before
fails from here on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0018"
branch_labels = None
depends_on = None

KEY = ["tenant", "scope", "period"]
KNOWN = "period IN ('day', 'month', 'total')"


def upgrade() -> None:
    with op.batch_alter_table("budgets") as table:
        table.add_column(sa.Column("period", sa.Text(), nullable=False, server_default="total"))
        table.add_column(sa.Column("window_start", sa.Double(), nullable=False, server_default="0"))
        table.add_column(sa.Column("window_end", sa.Double()))
        table.drop_constraint("one_budget_per_scope", type_="primary")
        table.create_primary_key("one_budget_per_scope", KEY)
        table.create_check_constraint("budget_period_is_known", KNOWN)
    op.create_table(
        "ceilings",
        sa.Column("run_id", sa.Text(), sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("reserved", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.add_column("orders", sa.Column("unpriced", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("tasks", sa.Column("unpriced_calls", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("tasks", "unpriced_calls")
    op.drop_column("orders", "unpriced")
    op.drop_table("ceilings")
    op.execute("DELETE FROM budgets WHERE period <> 'total'")
    with op.batch_alter_table("budgets") as table:
        table.drop_constraint("budget_period_is_known", type_="check")
        table.drop_constraint("one_budget_per_scope", type_="primary")
        table.create_primary_key("one_budget_per_scope", KEY[:2])
        table.drop_column("window_end")
        table.drop_column("window_start")
        table.drop_column("period")
