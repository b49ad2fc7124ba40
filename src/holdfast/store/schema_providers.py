"""The table of what providers do not answer. It belongs to `schema.metadata`."""

from sqlalchemy import Column, Double, Integer, PrimaryKeyConstraint, Table, Text

from holdfast.store.schema import metadata

# Written by whoever sends, at the first exchange that fails, and gone with the first answer. Nothing depends
# on it: a row may be late, or lost.
provider_troubles = Table(
    "provider_troubles",
    metadata,
    Column("provider", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("status", Integer),
    Column("tries", Integer, nullable=False),
    Column("since", Double, nullable=False),
    Column("last_at", Double, nullable=False),
    PrimaryKeyConstraint("provider", "endpoint", name="one_trouble_per_provider"),
)
