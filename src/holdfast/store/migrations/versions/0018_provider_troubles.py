"""What providers do not answer, for people to look at while work waits for them."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "provider_troubles",
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("endpoint", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("provider", "endpoint", name="one_trouble_per_provider"),
    )


def downgrade() -> None:
    op.drop_table("provider_troubles")
