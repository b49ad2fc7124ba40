"""Documents, and what search needs: numbered chunks with their terms, full-text indexes, counts of terms."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KEPT = "head_id, generation, slice, epoch, position, page, text, call_key, data"
PLACE = ["head_id", "generation", "slice", "epoch", "position"]


def upgrade() -> None:
    _number_chunks()
    if op.get_bind().dialect.name == "sqlite":
        _full_text_of_sqlite()
    else:
        op.execute(
            "CREATE INDEX ix_chunks_words ON chunks "
            "USING gin (array_to_tsvector(string_to_array(words, ' '))) "
            "WHERE words IS NOT NULL"
        )
    op.create_table(
        "word_counts",
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("head_id", "generation", "slice", name="one_count_per_slice"),
    )
    op.add_column("collections", sa.Column("title", sa.Text(), nullable=False, server_default=""))
    op.add_column("collections", sa.Column("options", sa.JSON()))
    op.add_column("collections", sa.Column("created_at", sa.Double(), nullable=False, server_default="0"))
    op.add_column(
        "collections", sa.Column("deleted", sa.Boolean(), nullable=False, server_default=sa.text("(false)"))
    )
    _documents()


def _number_chunks() -> None:
    """Chunks get a number of their own; the place of a chunk stays unique."""
    op.rename_table("chunks", "chunks_before")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE chunks_before DROP CONSTRAINT g2_one_chunk_per_place_and_epoch")
    op.create_table(
        "chunks",
        sa.Column("id", ID, autoincrement=True, nullable=False),
        sa.Column("head_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("slice", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("page", sa.Integer()),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("call_key", sa.Text()),
        sa.Column("data", sa.JSON()),
        sa.Column("words", sa.Text()),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chunks")),
        sa.UniqueConstraint(*PLACE, name="g2_one_chunk_per_place_and_epoch"),
    )
    op.execute(f"INSERT INTO chunks ({KEPT}) SELECT {KEPT} FROM chunks_before")  # noqa: S608 - our own names
    op.drop_table("chunks_before")


def _full_text_of_sqlite() -> None:
    """An index that keeps no text of its own; triggers tell it what comes and goes.

    Its tokenizer is `ascii`: there every character beyond ASCII belongs to a word, so that a term is one
    token. `unicode61` knows the letters of Unicode 6.1 only, and would cut a term at any newer one and at
    the vowel signs of Indic scripts.
    """
    op.execute(
        "CREATE VIRTUAL TABLE chunk_words USING fts5(words, content='chunks', content_rowid='id', "
        "tokenize='ascii', columnsize=0, detail='none')"
    )
    gone = "INSERT INTO chunk_words(chunk_words, rowid, words) VALUES ('delete', old.id, old.words);"
    come = "INSERT INTO chunk_words(rowid, words) VALUES (new.id, new.words);"
    op.execute(
        f"CREATE TRIGGER chunk_words_come AFTER INSERT ON chunks WHEN new.words IS NOT NULL BEGIN {come} END"
    )
    op.execute(
        f"CREATE TRIGGER chunk_words_gone AFTER DELETE ON chunks WHEN old.words IS NOT NULL BEGIN {gone} END"
    )


def _documents() -> None:
    op.create_table(
        "documents",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), server_default="", nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("url", sa.Text()),
        sa.Column("etag", sa.Text()),
        sa.Column("last_modified", sa.Text()),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("options", sa.JSON()),
        sa.Column("format", sa.Text()),
        sa.Column("pages", sa.Integer()),
        sa.Column("chunks", sa.Integer()),
        sa.Column("thumbnail", sa.Text()),
        sa.Column("deleted", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name="one_document_per_id"),
    )
    live = sa.text("NOT deleted")
    op.create_index(
        "one_live_document_per_content",
        "documents",
        ["tenant", "collection", "digest"],
        unique=True,
        sqlite_where=live,
        postgresql_where=live,
    )
    op.create_index("ix_documents_collection", "documents", ["tenant", "collection", "id"])
    op.create_index("ix_documents_name", "documents", ["tenant", "collection", "name"])
    op.create_index("ix_documents_digest", "documents", ["digest"])


def downgrade() -> None:
    op.drop_table("documents")
    for name in ("deleted", "created_at", "options", "title"):
        op.drop_column("collections", name)
    op.drop_table("word_counts")
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE chunk_words")
        op.execute("DROP TRIGGER chunk_words_come")
        op.execute("DROP TRIGGER chunk_words_gone")
    else:
        op.drop_index("ix_chunks_words", table_name="chunks")
    op.drop_column("chunks", "words")
