"""The tables of what kinds derive from documents: nodes, edges, sources and state.

Rows are staged under (head, generation, slice, epoch) in the transaction that finishes a slice. They are
visible while their generation is the published one of their head, and pruned with it.
"""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from holdfast.store.base.schema.metadata import metadata

# A summary, an entity, a report, a topic. `key` names it within its generation; what is derived from the same
# has the same key on every database. `document` is set if all of it is from one document. `parent` is the key
# of the node above it, set by the slice that makes that one. `call_key` is the call that embedded it.
derived_nodes = Table(
    "holdfast_derived_nodes",
    metadata,
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("level", Integer, nullable=False),
    Column("document", Text),
    Column("parent", Text),
    Column("title", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("call_key", Text),
    # Terms by `search.tokenizer`, separated by spaces.
    Column("words", Text),
    Column("data", JSON(none_as_null=True)),
    PrimaryKeyConstraint(
        "head_id",
        "generation",
        "slice",
        "epoch",
        "position",
        name="holdfast_g2_one_node_per_place_and_epoch",
    ),
    Index("holdfast_one_node_per_key", "head_id", "generation", "key", unique=True),
    Index("holdfast_derived_nodes_parent", "head_id", "generation", "parent", "slice", "position"),
    Index("holdfast_derived_nodes_document", "head_id", "generation", "document", "level"),
)

# What connects two nodes of a generation, by their keys.
derived_edges = Table(
    "holdfast_derived_edges",
    metadata,
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("text", Text, nullable=False, server_default=""),
    Column("data", JSON(none_as_null=True)),
    PrimaryKeyConstraint(
        "head_id",
        "generation",
        "slice",
        "epoch",
        "position",
        name="holdfast_g2_one_edge_per_place_and_epoch",
    ),
    Index("holdfast_derived_edges_source", "head_id", "generation", "source"),
    Index("holdfast_derived_edges_target", "head_id", "generation", "target"),
)

# What a node was derived from: the chunks `first` to `last`, by number, of a generation of a document. Every
# document that a node has anything from has a row: readers withhold a node if one of them is gone.
derived_sources = Table(
    "holdfast_derived_sources",
    metadata,
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("node", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("first", Integer, nullable=False),
    Column("last", Integer, nullable=False),
    PrimaryKeyConstraint(
        "head_id",
        "generation",
        "slice",
        "epoch",
        "position",
        name="holdfast_g2_one_source_per_place_and_epoch",
    ),
    Index("holdfast_derived_sources_node", "head_id", "generation", "node", "document", "first"),
    Index("holdfast_derived_sources_document", "tenant", "document", "head_id"),
)

# What the next generation needs so that it changes little: pivots of clusters, the partition of a graph.
derived_state = Table(
    "holdfast_derived_state",
    metadata,
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("level", Integer, nullable=False),
    Column("data", JSON(none_as_null=True)),
    Column("vector", LargeBinary),
    PrimaryKeyConstraint(
        "head_id",
        "generation",
        "slice",
        "epoch",
        "position",
        name="holdfast_g2_one_state_per_place_and_epoch",
    ),
    Index("holdfast_derived_state_name", "head_id", "generation", "level", "name"),
)

DERIVED = (derived_nodes, derived_edges, derived_sources, derived_state)
