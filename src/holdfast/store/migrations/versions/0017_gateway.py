"""The gateway: its calls, its counts, and on whose behalf an order was paid. The running release has none."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """The tables of the gateway exist; orders may name the key and the scope that they were paid for."""
    op.add_column("holdfast_orders", sa.Column("key_id", sa.Text(), nullable=True))
    op.add_column("holdfast_orders", sa.Column("reuse_scope", sa.Text(), nullable=True))
    op.create_table(
        "holdfast_gateway_calls",
        sa.Column("call", sa.Text(), primary_key=True),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("hold", sa.Text(), nullable=False),
        sa.Column("held_until", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
    )
    op.create_index("holdfast_gateway_calls_content", "holdfast_gateway_calls", ["tenant", "content"])
    op.create_index("holdfast_gateway_calls_created", "holdfast_gateway_calls", ["created_at"])
    named = ("gateway", "key_id", "scope", "provider", "endpoint", "model")
    counted = ("requests", "reused", "waited", "errors", "reused_calls", "saved", "millis")
    op.create_table(
        "holdfast_gateway_usage",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("hour", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in named),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in counted),
        sa.PrimaryKeyConstraint("tenant", "hour", *named, name="holdfast_one_usage_per_hour"),
    )
    op.create_table(
        "holdfast_gateway_notes",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("kind", "key_id", "scope", "endpoint", "model")
        ),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("millis", sa.BigInteger(), nullable=False),
        sa.Column("order_id", sa.Text(), nullable=True),
        sa.CheckConstraint("kind IN ('slow', 'error')", name="holdfast_gateway_note_kind_is_known"),
    )
    op.create_index("holdfast_gateway_notes_tenant", "holdfast_gateway_notes", ["tenant", "kind", "at"])
    op.create_index("holdfast_gateway_notes_at", "holdfast_gateway_notes", ["at"])
