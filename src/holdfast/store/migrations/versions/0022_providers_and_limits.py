"""Who embedded each vector, and limits that the requests of runs and of rounds name themselves.

Calls of the release before, and those that its workers add meanwhile, have no provider of their own: readers
take that of the order. What was imported has no order, and takes it from the run that published it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0016"
branch_labels = None
depends_on = None

IMPORTED = """
UPDATE calls SET provider = named.provider
FROM (
    SELECT DISTINCT heads.tenant, chunks.call_key, runs.options ->> 'provider' AS provider
    FROM runs
    JOIN heads ON heads.id = runs.head_id
    JOIN chunks ON chunks.head_id = runs.head_id AND chunks.generation = runs.generation
    WHERE runs.reason = 'imported' AND chunks.call_key IS NOT NULL
) AS named
WHERE calls.tenant = named.tenant AND calls.key = named.call_key AND calls.order_id IS NULL
  AND named.provider IS NOT NULL
"""


def upgrade() -> None:
    op.add_column("calls", sa.Column("provider", sa.Text(), nullable=False, server_default=""))
    op.execute(IMPORTED)
    op.add_column("ceilings", sa.Column("requested", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("rounds", sa.Column("max_cost", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("rounds", "max_cost")
    op.drop_column("ceilings", "requested")
    op.drop_column("calls", "provider")
