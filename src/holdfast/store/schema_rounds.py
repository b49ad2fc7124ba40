"""The table of what is still to be done to a whole collection. It belongs to `schema.metadata`."""

from sqlalchemy import Column, Double, PrimaryKeyConstraint, Table, Text

from holdfast.store.schema import metadata

# A round over all documents of a collection, which the sweep goes on with where it stopped: `options` asks
# for each again, `delete` ends each. `after` is the last one that was seen to; `token` is drawn anew when the
# round begins anew, so that whoever still carries the old one moves nothing.
rounds = Table(
    "rounds",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("collection", Text, nullable=False),
    Column("sort", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("due_at", Double, nullable=False),
    PrimaryKeyConstraint("tenant", "collection", "sort", name="one_round_per_collection_and_sort"),
)
