"""The processes that hold tasks and carry orders, and until when each is known to be alive."""

from sqlalchemy import Column, Double, Index, Table, Text

from holdfast.store.schema import metadata

# `process` names it so that others on its machine can tell whether it has died, `parent` the one that watches
# over it, "" if nobody does. Its lease is renewed while an order is in flight, and else means nothing.
carriers = Table(
    "carriers",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("process", Text, nullable=False),
    Column("parent", Text, nullable=False),
    Column("lease_until", Double, nullable=False, server_default="0"),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Index("ix_carriers_process", "process"),
    Index("ix_carriers_lease", "lease_until"),
)
