"""The tables of limits on spending, and of whom it is spent with. They belong to `schema.metadata`."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from holdfast.core.periods import Period
from holdfast.store.schema import metadata, one_of

budgets = Table(
    "budgets",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("period", Text, nullable=False, server_default="total"),
    Column("hard_limit", BigInteger),
    Column("soft_limit", BigInteger),
    # The day or month that `spent` is of; past its end nothing is spent yet. NULL: it never ends.
    Column("window_start", Double, nullable=False, server_default="0"),
    Column("window_end", Double),
    Column("spent", BigInteger, nullable=False, server_default="0"),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
    # The crossing of the soft limit is in the journal; a new limit may be crossed anew.
    Column("warned", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("tenant", "scope", "period", name="one_budget_per_scope"),
    CheckConstraint("reserved >= 0", name="g5_reservations_are_never_negative"),
    CheckConstraint(one_of("period", Period), name="budget_period_is_known"),
)

# What one run may spend at most, for runs that have such a limit.
ceilings = Table(
    "ceilings",
    metadata,
    Column("run_id", ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("most", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False, server_default="0"),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
)


throttles = Table(
    "throttles",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("not_before", Double, nullable=False),
    Column("refusals", Integer, nullable=False, server_default="0"),
)
