"""Chunks and their words."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.migrations.baseline.shared import ID


def create() -> None:
    """The tables and their indexes are there."""
    _chunks()
    _word_counts()


def _chunks() -> None:
    op.create_table(
        "holdfast_chunks",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("call_key", sa.Text(), nullable=True),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("words", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="holdfast_chunks_pk"),
        sa.UniqueConstraint(
            "head_id",
            "generation",
            "slice",
            "epoch",
            "position",
            name="holdfast_g2_one_chunk_per_place_and_epoch",
        ),
    )


def _word_counts() -> None:
    op.create_table(
        "holdfast_word_counts",
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("head_id", "generation", "slice", name="holdfast_one_count_per_slice"),
    )
