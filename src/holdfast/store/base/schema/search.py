"""The tables that search reads: chunks, and their words."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from holdfast.store.base.schema.metadata import Id, metadata

chunks = Table(
    "holdfast_chunks",
    metadata,
    # Its own number, for SQLite's full-text index: VACUUM may change a rowid.
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("page", Integer),
    Column("text", Text, nullable=False),
    Column("call_key", Text),
    Column("data", JSON(none_as_null=True)),
    # Terms by `search.words`, separated by spaces. Its indexes, holdfast_chunk_words and
    # holdfast_chunks_words, are created by migrations.
    Column("words", Text),
    UniqueConstraint(
        "head_id",
        "generation",
        "slice",
        "epoch",
        "position",
        name="holdfast_g2_one_chunk_per_place_and_epoch",
    ),
)

# For each slice: which of its chunks have a term, how often, and how long they are; combined by readers.
word_counts = Table(
    "holdfast_word_counts",
    metadata,
    Column("head_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("slice", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("length", BigInteger, nullable=False),
    Column("terms", LargeBinary, nullable=False),
    PrimaryKeyConstraint("head_id", "generation", "slice", name="holdfast_one_count_per_slice"),
)
