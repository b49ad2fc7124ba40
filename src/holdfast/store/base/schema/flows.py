"""The tables of flows: the versions that a tenant has applied, and what costly steps gave."""

from sqlalchemy import JSON, BigInteger, Column, Double, Index, Integer, PrimaryKeyConstraint, Table, Text

from holdfast.store.base.schema.metadata import metadata

# A version never changes: rows are inserted and read. `files` are the schemas that the source names.
flows = Table(
    "holdfast_flows",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("source", Text, nullable=False),
    Column("files", JSON(none_as_null=True)),
    Column("digest", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("tenant", "name", "version", name="holdfast_one_flow_per_version"),
)

# The output of a step that is not paid for but may take long. `key` is of all that it depends on. It goes
# with the document that used it last.
step_outputs = Table(
    "holdfast_step_outputs",
    metadata,
    Column("tenant", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("head_id", BigInteger, nullable=False),
    Column("output", JSON, nullable=False),
    Column("created_at", Double, nullable=False),
    PrimaryKeyConstraint("tenant", "key", name="holdfast_one_output_per_step_and_input"),
    Index("holdfast_step_outputs_head", "head_id"),
)
