"""The table of what belongs to this database. It belongs to `schema.metadata`."""

from sqlalchemy import CheckConstraint, Column, Integer, Table, Text

from holdfast.store.schema import metadata

# The store that holds the bytes of the documents carries the same id: a process that sees another one is in
# the wrong folder, and every document would be missing there.
installation = Table(
    "installation",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("blobs_id", Text, nullable=False),
    CheckConstraint("id = 1", name="one_installation_per_database"),
)
