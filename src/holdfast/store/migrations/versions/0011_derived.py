"""Nodes, edges, sources and state of what kinds derive from documents; the running release has none."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_PLACE = ("head_id", "generation", "slice", "epoch", "position")


def _table(name: str, constraint: str, *columns: sa.Column) -> None:  # type: ignore[type-arg]
    op.create_table(
        name,
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        *columns,
        sa.PrimaryKeyConstraint(*_PLACE, name=constraint),
    )


def _nodes() -> None:
    _table(
        "holdfast_derived_nodes",
        "holdfast_g2_one_node_per_place_and_epoch",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("document", sa.Text()),
        sa.Column("parent", sa.Text()),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("call_key", sa.Text()),
        sa.Column("words", sa.Text()),
        sa.Column("data", sa.JSON(none_as_null=True)),
    )
    of_generation = ["head_id", "generation"]
    op.create_index(
        "holdfast_one_node_per_key", "holdfast_derived_nodes", [*of_generation, "key"], unique=True
    )
    op.create_index(
        "holdfast_derived_nodes_parent",
        "holdfast_derived_nodes",
        [*of_generation, "parent", "slice", "position"],
    )
    op.create_index(
        "holdfast_derived_nodes_document", "holdfast_derived_nodes", [*of_generation, "document", "level"]
    )


def _edges() -> None:
    _table(
        "holdfast_derived_edges",
        "holdfast_g2_one_edge_per_place_and_epoch",
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False, server_default=""),
        sa.Column("data", sa.JSON(none_as_null=True)),
    )
    for end in ("source", "target"):
        op.create_index(
            f"holdfast_derived_edges_{end}", "holdfast_derived_edges", ["head_id", "generation", end]
        )


def _sources() -> None:
    _table(
        "holdfast_derived_sources",
        "holdfast_g2_one_source_per_place_and_epoch",
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
    )
    op.create_index(
        "holdfast_derived_sources_node",
        "holdfast_derived_sources",
        ["head_id", "generation", "node", "document", "first"],
    )
    op.create_index(
        "holdfast_derived_sources_document", "holdfast_derived_sources", ["tenant", "document", "head_id"]
    )


def upgrade() -> None:
    """The four tables exist."""
    _nodes()
    _edges()
    _sources()
    _table(
        "holdfast_derived_state",
        "holdfast_g2_one_state_per_place_and_epoch",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("level", sa.Integer(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True)),
        sa.Column("vector", sa.LargeBinary()),
    )
    op.create_index(
        "holdfast_derived_state_name",
        "holdfast_derived_state",
        ["head_id", "generation", "level", "name"],
    )
